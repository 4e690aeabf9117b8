#!/usr/bin/env python3
"""Prints trajectories of optimizers, for tests/unit/step/torch_optimizers_test.cpp.

    python3 tests/tools/torch-optimizers.py > tests/unit/step/torch_optimizers.json

Needs PyTorch. NAdam, RAdam, Adafactor and Muon are torch.optim's. Lion, schedule-free AdamW, LAMB and the 8-bit AdamW follow their
papers' algorithms: Chen et al. 2023 (Algorithm 2), Defazio et al. 2024 (Algorithm 1 with the weights of its implementation notes),
You et al. 2020 (Algorithm 2) and Dettmers et al. 2022 (dynamic quantisation of blocks, here of 64 elements).
"""
import json
import math

import torch

STEPS = 100
KEEP = [1, 10, 100]


def parameters():
    matrix = torch.sin(torch.arange(30, dtype=torch.float64) * 0.9).reshape(6, 5)
    vector = torch.cos(torch.arange(7, dtype=torch.float64) * 1.3)
    return [torch.nn.Parameter(matrix.clone()), torch.nn.Parameter(vector.clone())]


def gradient(parameter, step):
    numbers = torch.arange(parameter.numel(), dtype=torch.float64).reshape(parameter.shape)
    return 0.3 * (parameter.detach() - torch.sin(numbers * 0.31)) + 0.2 * torch.cos(numbers * 0.7 + step * 0.83)


class Lion:
    def __init__(self, params, lr, betas, weight_decay):
        self.params, self.lr, self.betas, self.decay = params, lr, betas, weight_decay
        self.momentum = [torch.zeros_like(p) for p in params]

    def step(self):
        b1, b2 = self.betas
        for p, m in zip(self.params, self.momentum):
            direction = torch.sign(b1 * m + (1 - b1) * p.grad)
            p.data = p.data - self.lr * (direction + self.decay * p.data)
            m.copy_(b2 * m + (1 - b2) * p.grad)


class ScheduleFreeAdamW:
    """y is trained, x is the average to evaluate, z the fast iterate."""

    def __init__(self, params, lr, betas, eps, weight_decay, warmup_steps, r):
        self.params, self.lr, self.betas, self.eps = params, lr, betas, eps
        self.decay, self.warmup, self.r = weight_decay, warmup_steps, r
        self.x = [p.detach().clone() for p in params]
        self.z = [p.detach().clone() for p in params]
        self.v = [torch.zeros_like(p) for p in params]
        self.t, self.weights, self.lr_max = 0, 0.0, 0.0

    def step(self):
        b1, b2 = self.betas
        self.t += 1
        lr = self.lr * min(1.0, self.t / self.warmup)
        self.lr_max = max(self.lr_max, lr)
        weight = self.t ** self.r * self.lr_max ** 2
        self.weights += weight
        c = weight / self.weights
        for p, x, z, v in zip(self.params, self.x, self.z, self.v):
            v.copy_(b2 * v + (1 - b2) * p.grad ** 2)
            z -= lr * (p.grad / (torch.sqrt(v / (1 - b2 ** self.t)) + self.eps) + self.decay * p.data)
            x.copy_((1 - c) * x + c * z)
            p.data = (1 - b1) * z + b1 * x


class Lamb:
    def __init__(self, params, lr, betas, eps, weight_decay):
        self.params, self.lr, self.betas, self.eps, self.decay = params, lr, betas, eps, weight_decay
        self.m = [torch.zeros_like(p) for p in params]
        self.v = [torch.zeros_like(p) for p in params]
        self.t = 0

    def step(self):
        b1, b2 = self.betas
        self.t += 1
        for p, m, v in zip(self.params, self.m, self.v):
            m.copy_(b1 * m + (1 - b1) * p.grad)
            v.copy_(b2 * v + (1 - b2) * p.grad ** 2)
            r = (m / (1 - b1 ** self.t)) / (torch.sqrt(v / (1 - b2 ** self.t)) + self.eps)
            u = r + self.decay * p.data
            p.data = p.data - self.lr * (p.data.norm() / u.norm()) * u


def codes(signed):
    """256 fractions: per decade twice as many as in the one below, at the middles of equal parts of [0.1, 1]."""
    found = [0.0, 1.0]
    for decade in range(7):
        parts = 2 ** (decade if signed else decade + 1)
        edges = torch.linspace(0.1, 1, parts + 1, dtype=torch.float64)
        middles = ((edges[1:] + edges[:-1]) / 2 * 10.0 ** (decade - 6)).tolist()
        found += middles + ([-x for x in middles] if signed else [])
    return torch.tensor(sorted(found), dtype=torch.float64)


class AdamW8bit:
    """Moments are rounded to fractions of the largest magnitude of their block after each step."""

    def __init__(self, params, lr, betas, eps, weight_decay):
        self.params, self.lr, self.betas, self.eps, self.decay = params, lr, betas, eps, weight_decay
        self.m = [torch.zeros_like(p) for p in params]
        self.v = [torch.zeros_like(p) for p in params]
        self.t = 0

    @staticmethod
    def rounded(numbers, signed):
        table = codes(signed)
        rows = []
        for block in numbers.flatten().split(64):
            scale = block.abs().max()
            fractions = block / scale
            nearest = (fractions[:, None] - table[None]).abs().argmin(1)
            if not signed:
                nearest = torch.where((fractions > 0) & (nearest == 0), 1, nearest)
            rows.append(table[nearest] * scale)
        return torch.cat(rows).reshape(numbers.shape)

    def step(self):
        b1, b2 = self.betas
        self.t += 1
        for i, p in enumerate(self.params):
            m = b1 * self.m[i] + (1 - b1) * p.grad
            v = b2 * self.v[i] + (1 - b2) * p.grad ** 2
            self.m[i], self.v[i] = self.rounded(m, True), self.rounded(v, False)
            step = (m / (1 - b1 ** self.t)) / (torch.sqrt(v / (1 - b2 ** self.t)) + self.eps)
            p.data = p.data * (1 - self.lr * self.decay) - self.lr * step


def run(name, make, options, matrices_only=False):
    params = parameters()[:1] if matrices_only else parameters()
    optimizer = make(params, **options)
    kept = {}
    for step in range(1, STEPS + 1):
        for parameter in params:
            parameter.grad = gradient(parameter, step)
        optimizer.step()
        if step in KEEP:
            kept[step] = [p.detach().flatten().tolist() for p in params]
    case = {"optimizer": name, "options": options, "parameters": kept}
    if hasattr(optimizer, "x"):
        case["evaluated"] = [x.flatten().tolist() for x in optimizer.x]
    return case


def cases():
    betas = [0.9, 0.99]
    yield run("Lion", Lion, {"lr": 0.01, "betas": betas, "weight_decay": 0.1})
    for decoupled in [False, True]:
        options = {"lr": 0.02, "betas": betas, "eps": 1e-8, "weight_decay": 0.1, "decoupled_weight_decay": decoupled}
        yield run("NAdam", torch.optim.NAdam, {**options, "momentum_decay": 0.004})
        yield run("RAdam", torch.optim.RAdam, options)
    options = {"lr": 0.02, "betas": betas, "eps": 1e-8, "weight_decay": 0.1}
    yield run("ScheduleFreeAdamW", ScheduleFreeAdamW, {**options, "warmup_steps": 10, "r": 1.0})
    options = {"lr": 0.02, "betas": betas, "eps": 1e-6, "weight_decay": 0.1}
    yield run("Lamb", Lamb, options)
    yield run("AdamW8bit", AdamW8bit, options)
    for decay in [0.0, 0.1]:
        yield run("Adafactor", torch.optim.Adafactor, {"lr": 0.05, "beta2_decay": -0.7, "d": 1.0, "weight_decay": decay})
    for rate in ["original", "match_rms_adamw"]:
        options = {"lr": 0.01, "weight_decay": 0.1, "momentum": 0.9, "nesterov": rate == "original", "adjust_lr_fn": rate}
        yield run("Muon", torch.optim.Muon, options, matrices_only=True)


if __name__ == "__main__":
    torch.set_default_dtype(torch.float64)
    assert math.isclose(gradient(parameters()[1], 1)[0].item(), 0.3 + 0.2 * math.cos(0.83))
    print(json.dumps({"torch": torch.__version__, "cases": list(cases())}))
