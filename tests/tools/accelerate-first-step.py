#!/usr/bin/env python3
"""One step of training with Accelerate: accelerate-first-step.py FILE writes when it was done (CLOCK_MONOTONIC, seconds).

What tests/integration/startup/first_step.cpp is, for its peer."""
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
assert accelerator.num_processes == 2, "one process was started, not two"
if accelerator.is_main_process:
    with open(sys.argv[1], "w") as out:
        out.write(f"{now:.6f}\n")
accelerator.end_training()
if torch.distributed.is_initialized():
    torch.distributed.destroy_process_group()
