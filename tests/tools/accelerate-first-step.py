#!/usr/bin/env python3
"""Runs one training step with Accelerate and writes the time of its end (CLOCK_MONOTONIC, seconds): accelerate-first-step.py FILE

The counterpart of tests/integration/startup/first_step.cpp."""
import sys
import time

import torch
from accelerate import Accelerator

accelerator = Accelerator(cpu=True)
model = torch.nn.Linear(10, 2)
model, optimizer = accelerator.prepare(model, torch.optim.SGD(model.parameters(), lr=0.1))
accelerator.backward(model(torch.randn(4, 10)).square().mean())
optimizer.step()
now = time.monotonic()
assert accelerator.num_processes == 2, "expected two processes"
if accelerator.is_main_process:
    with open(sys.argv[1], "w") as out:
        out.write(f"{now:.6f}\n")
accelerator.end_training()
if torch.distributed.is_initialized():
    torch.distributed.destroy_process_group()
