#!/usr/bin/env python3
"""Measures the seconds per training step in eager PyTorch, for workloads of `hortator bench step` (share/bench/workloads.cpp).

    python3 tests/tools/eager-step.py mlp-small gpt-124m [--precision bf16] [--blocks 10] [--steps 10] [--device cuda]

Prints one JSON object per line, like `hortator bench step --json`: the same model, batch and optimizer kernel. Run both on the same,
otherwise idle machine.
"""
import argparse
import json
import statistics
import time

import torch
from torch import nn
from torch.nn import functional as F


class Layer(nn.Module):
    """Pre-norm, causal attention, GELU with the tanh approximation."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.norm_1, self.norm_2 = nn.LayerNorm(width), nn.LayerNorm(width)

    def forward(self, x):
        q, k, v = (part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in self.qkv(self.norm_1(x)).chunk(3, -1))
        x = x + self.out(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(-2))
        return x + self.down(F.gelu(self.up(self.norm_2(x)), approximate="tanh"))


class Gpt(nn.Module):
    """The output layer is tied to the token embedding."""

    def __init__(self, width=768, vocabulary=50257):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(vocabulary, width), nn.Embedding(1024, width)
        self.layers = nn.ModuleList(Layer(width, 12) for _ in range(12))
        self.norm = nn.LayerNorm(width)

    def forward(self, ids):
        x = self.tokens(ids) + self.positions(torch.arange(ids.size(1), device=ids.device))
        for layer in self.layers:
            x = layer(x)
        return F.linear(self.norm(x), self.tokens.weight).flatten(0, 1)


def small_mlp():
    return nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 10))


WORKLOADS = {  # model, input, target, optimizer
    "mlp-small": (small_mlp, lambda: torch.randn(32, 64), lambda: torch.randint(10, (32,)),
                  lambda parameters: torch.optim.AdamW(parameters, lr=1e-3, fused=True)),
    "gpt-124m": (Gpt, lambda: torch.randint(50257, (8, 1024)), lambda: torch.randint(50257, (8 * 1024,)),
                 lambda parameters: torch.optim.SGD(parameters, lr=1e-3, momentum=0.9, fused=True)),
}


def seconds_a_step(name, precision, device, blocks, steps):
    make_net, make_input, make_target, make_optimizer = WORKLOADS[name]
    net = make_net().to(device)
    batch, target = make_input().to(device), make_target().to(device)
    optimizer = make_optimizer(net.parameters())
    types = {"no": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}

    def step():
        with torch.autocast(device, types[precision], enabled=precision != "no"):
            output = net(batch)
        F.cross_entropy(output, target).backward()
        optimizer.step()
        optimizer.zero_grad()

    def block():
        begin = time.perf_counter()
        for _ in range(steps):
            step()
        if device == "cuda":
            torch.cuda.synchronize()
        return (time.perf_counter() - begin) / steps

    block()
    return [block() for _ in range(blocks)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("workloads", nargs="+", choices=WORKLOADS)
    parser.add_argument("--precision", choices=["no", "bf16", "fp16"], default="no")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--blocks", type=int, default=21)
    parser.add_argument("--steps", type=int, default=50)
    given = parser.parse_args()
    torch.manual_seed(0)
    for name in given.workloads:
        times = seconds_a_step(name, given.precision, given.device, given.blocks, given.steps)
        params = {"workload": name, "device": given.device, "precision": given.precision, "steps": given.steps,
                  "threads": torch.get_num_threads(), "torch": torch.__version__}
        print(json.dumps({"name": "eager_step", "params": params, "median_s": statistics.median(times), "min_s": min(times),
                          "runs": len(times)}), flush=True)


if __name__ == "__main__":
    main()
