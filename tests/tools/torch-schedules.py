#!/usr/bin/env python3
"""Prints the learning rates and momenta of PyTorch's schedulers, for tests/unit/step/torch_schedules_test.cpp.

    python3 tests/tools/torch-schedules.py > tests/unit/step/torch_schedules.json

Needs PyTorch. The warm-ups follow the definitions of Transformers' get_*_schedule_with_warmup.
"""
import json
import math
import random
import sys

import torch
from torch.optim import lr_scheduler as lrs

RATES = [0.4, 0.02]


def make_optimizer(kind):
    groups = [{"params": [torch.nn.Parameter(torch.ones(1))], "lr": rate} for rate in RATES]
    if kind == "sgd":
        return torch.optim.SGD(groups, lr=0.1, momentum=0.9)
    return torch.optim.AdamW(groups, lr=0.1)


def momentum(group):
    return group["momentum"] if "momentum" in group else group["betas"][0]


def walk(optimizer, scheduler, steps):
    """The settings at step 0, 1, ..., steps - 1."""
    rates, momenta = [], []
    for step in range(steps):
        if step > 0:
            optimizer.step()
            scheduler.step()
        rates.append([group["lr"] for group in optimizer.param_groups])
        momenta.append([momentum(group) for group in optimizer.param_groups])
    return {"lr": rates, "momentum": momenta}


def case(kind, make, options, steps, optimizer="sgd"):
    inner = make_optimizer(optimizer)
    return {"kind": kind, "options": options, "optimizer": optimizer, **walk(inner, make(inner), steps)}


def warmup_cases():
    for warmup, total in [(4, 12), (0, 10), (5, 5), (1, 30)]:
        def rise(step, warmup=warmup):
            return step / max(1, warmup)

        def constant(step, warmup=warmup):
            return rise(step) if step < warmup else 1.0

        def linear(step, warmup=warmup, total=total):
            return rise(step) if step < warmup else max(0.0, (total - step) / max(1, total - warmup))

        yield case("constant_warmup", lambda o: lrs.LambdaLR(o, constant), {"warmup_steps": warmup}, total + 3)
        yield case("linear_warmup", lambda o: lrs.LambdaLR(o, linear), {"warmup_steps": warmup, "total_steps": total}, total + 3)
        for cycles in [0.5, 1.5]:
            def cosine(step, warmup=warmup, total=total, cycles=cycles):
                if step < warmup:
                    return rise(step)
                return max(0.0, 0.5 * (1 + math.cos(2 * math.pi * cycles * (step - warmup) / max(1, total - warmup))))

            options = {"warmup_steps": warmup, "total_steps": total, "num_cycles": cycles}
            yield case("cosine_warmup", lambda o: lrs.LambdaLR(o, cosine), options, total + 1)


def one_cycle_cases():
    for optimizer in ["sgd", "adamw"]:
        for total, start, strategy, three, cycle, div, final in [
            (10, 0.3, "cos", False, True, 25.0, 1e4),
            (17, 0.25, "linear", False, True, 10.0, 100.0),
            (20, 0.3, "cos", True, True, 25.0, 1e4),
            (23, 0.45, "linear", True, False, 4.0, 3.0),
            (8, 0.0, "cos", False, True, 25.0, 1e4),
        ]:
            options = {"max_lr": [1.0, 0.3], "total_steps": total, "pct_start": start, "anneal_strategy": strategy,
                       "cycle_momentum": cycle, "base_momentum": [0.8, 0.7], "max_momentum": 0.95, "div_factor": div,
                       "final_div_factor": final, "three_phase": three}
            yield case("one_cycle", lambda o: lrs.OneCycleLR(o, **options), options, total, optimizer)


def decay_cases():
    yield case("step_lr", lambda o: lrs.StepLR(o, 3, 0.5), {"step_size": 3, "gamma": 0.5}, 12)
    milestones = [7, 2, 2, 9]
    yield case("multi_step_lr", lambda o: lrs.MultiStepLR(o, milestones, 0.3), {"milestones": milestones, "gamma": 0.3}, 12)
    yield case("exponential_lr", lambda o: lrs.ExponentialLR(o, 0.9), {"gamma": 0.9}, 12)
    for lowest in [0.0, 0.01]:
        yield case("cosine_annealing", lambda o: lrs.CosineAnnealingLR(o, 6, lowest), {"half_period": 6, "eta_min": lowest}, 20)


def further_cases():
    for first, factor, lowest in [(4, 1, 0.0), (3, 2, 0.01), (1, 3, 0.0)]:
        yield case("cosine_warm_restarts", lambda o: lrs.CosineAnnealingWarmRestarts(o, first, factor, lowest),
                   {"first_period": first, "factor": factor, "eta_min": lowest}, 20)
    for factor, total in [(0.25, 4), (1 / 3, 1)]:
        yield case("constant_lr", lambda o: lrs.ConstantLR(o, factor, total), {"factor": factor, "total_steps": total}, 8)
    for start, end, total in [(1 / 3, 1.0, 5), (1.0, 0.1, 7)]:
        yield case("linear_lr", lambda o: lrs.LinearLR(o, start, end, total),
                   {"start_factor": start, "end_factor": end, "total_steps": total}, 12)
    for total, power in [(5, 1.0), (8, 2.5)]:
        yield case("polynomial_lr", lambda o: lrs.PolynomialLR(o, total, power), {"total_steps": total, "power": power}, 12)
    for optimizer in ["sgd", "adamw"]:
        for mode, up, down, momentum in [("triangular", 4, None, True), ("triangular2", 3, 5, True), ("exp_range", 5, 2, False)]:
            options = {"base_lr": [0.01, 0.002], "max_lr": [0.5, 0.03], "step_size_up": up, "step_size_down": down, "mode": mode,
                       "gamma": 0.97, "cycle_momentum": momentum, "base_momentum": 0.8, "max_momentum": [0.95, 0.9]}
            yield case("cyclic_lr", lambda o: lrs.CyclicLR(o, **options), options, 25, optimizer)


def sequence_cases():
    def parts(o):
        return [lrs.LinearLR(o, 0.1, 1.0, 4), lrs.CosineAnnealingLR(o, 6), lrs.ExponentialLR(o, 0.8)]

    yield case("sequential_lr", lambda o: lrs.SequentialLR(o, parts(o), [4, 9]), {"milestones": [4, 9]}, 16)
    # Schedulers that change momenta set them when they are made: here they are made first.
    yield case("sequential_cycle", lambda o: lrs.SequentialLR(
        o, [lrs.OneCycleLR(o, [0.4, 0.02], 6, div_factor=1.0), lrs.StepLR(o, 3, 0.5)], [6]), {"milestones": [6]}, 14)

    def chained(o):
        return [lrs.ConstantLR(o, 0.5, 4), lrs.ExponentialLR(o, 0.9), lrs.StepLR(o, 3, 0.5)]

    yield case("chained_lr", lambda o: lrs.ChainedScheduler(chained(o), o), {}, 14)


def plateau_cases():
    dice = random.Random(5)
    for mode in ["min", "max"]:
        for relative in ["rel", "abs"]:
            for patience, cooldown, threshold, lowest in [(0, 0, 1e-4, 0.0), (1, 0, 0.1, [0.1, 0.004]), (2, 3, 0.05, 1e-3)]:
                options = {"mode": mode, "factor": 0.5, "patience": patience, "threshold": threshold,
                           "threshold_mode": relative, "cooldown": cooldown, "min_lr": lowest, "eps": 1e-8}
                sign = -1 if mode == "max" else 1
                metrics = [sign * (2 / (1 + 0.3 * i) + dice.uniform(-0.3, 0.3)) for i in range(40)]
                metrics[11] = float("nan")
                optimizer = make_optimizer("sgd")
                scheduler = lrs.ReduceLROnPlateau(optimizer, **options)
                rates = []
                for metric in metrics:
                    scheduler.step(metric)
                    rates.append([group["lr"] for group in optimizer.param_groups])
                texts = [repr(metric) for metric in metrics]  # JSON has no NaN
                yield {"kind": "reduce_on_plateau", "options": options, "metrics": texts, "lr": rates}


cases = [*warmup_cases(), *one_cycle_cases(), *decay_cases(), *further_cases(), *sequence_cases(), *plateau_cases()]
print(f'{{"torch": "{torch.__version__}", "base_lr": {RATES}, "cases": [')
print(",\n".join(json.dumps(one) for one in cases))
print("]}")
print(len(cases), "cases", file=sys.stderr)
