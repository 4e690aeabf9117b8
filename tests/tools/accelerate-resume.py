#!/usr/bin/env python3
"""Resumes the run of tests/unit/tools/checkpoint/accelerate_export_test.cpp in Accelerate, and compares the next losses.

Usage: accelerate-resume.py FOLDER EXPECTED.json     needs accelerate
"""

import json
import sys

import torch
from accelerate import Accelerator


class Net(torch.nn.Module):
    def __init__(self, dropout):
        super().__init__()
        self.fc1 = torch.nn.Linear(4, 3)
        self.norm = torch.nn.LayerNorm(3)
        self.drop = torch.nn.Dropout(dropout)
        self.fc2 = torch.nn.Linear(3, 1)

    def forward(self, x):
        return self.fc2(self.drop(torch.tanh(self.norm(self.fc1(x)))))


class Progress:
    def state_dict(self):
        return {}

    def load_state_dict(self, state):
        self.state = state


def warmup(step):
    return (step + 1) / 3 if step < 3 else 0.9 ** (step - 2)


def main(folder, expected):
    accelerator = Accelerator(cpu=True, step_scheduler_with_optimizer=False)
    net = Net(expected["dropout"])
    optimizer = torch.optim.AdamW([{"params": [*net.fc1.parameters(), *net.norm.parameters()]}, {"params": net.fc2.parameters()}], lr=0.5)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, warmup)
    model, optimizer, schedule = accelerator.prepare(net, optimizer, schedule)
    progress = Progress()
    accelerator.register_for_checkpointing(progress)
    accelerator.load_state(folder)
    assert progress.state["count"] == 5 and progress.state["nested"]["seen"].tolist() == [2.5, 2.5], progress.state
    losses = []
    for step in range(5, 10):
        x = torch.sin(torch.arange(32, dtype=torch.float32).reshape(8, 4) + step)
        loss = torch.nn.functional.mse_loss(model(x), x.sum(1, keepdim=True))
        accelerator.backward(loss)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    worst = max(abs(here - there) / abs(there) if here == here else float("inf") for here, there in zip(losses, expected["losses"]))
    print(f"{folder}: largest relative difference of {len(losses)} losses: {worst:.1e}")
    assert len(losses) == len(expected["losses"]) and worst < 1e-6, (losses, expected["losses"])


if __name__ == "__main__":
    with open(sys.argv[2]) as file:
        main(sys.argv[1], json.load(file))
