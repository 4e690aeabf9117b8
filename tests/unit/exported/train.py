#!/usr/bin/env python3
"""train.py PROGRAM FOLDER [--only NAME...] [--ways WAY...] -- LAUNCHER...: trains exported models by SGD, and compares the
losses of 50 steps of the example program `exported` with Python's: on one rank, and on two with each stage of ZeRO and
with divided layers; and the loss of the .pt2 file that it writes, in Python. LAUNCHER... starts two ranks. Prints a line
for each model; fails if losses differ by 1e-5."""
import argparse
import csv
import os
import pathlib
import subprocess
import sys
import warnings

import torch
import torch.nn.functional as F
from safetensors.torch import save_file

import nets
from compare import copied, exported, tensors_in

warnings.filterwarnings("ignore")
STEPS, RATE = 50, 0.01
WAYS = {"one": (False, []), "two": (True, []), "zero1": (True, ["--zero", "1"]), "zero2": (True, ["--zero", "2"]),
        "zero3": (True, ["--zero", "3"]), "tensor": (True, ["--tensor", "2"])}


def loss_of(module, case, target):
    return F.mse_loss(tensors_in(module(*copied(case.args), **copied(case.kwargs)))[0], target)


def python_losses(program, case, target):
    """Those of all steps, and of the trained model."""
    module = program.module()
    optimizer = torch.optim.SGD(module.parameters(), lr=RATE)
    losses = []
    for _ in range(STEPS):
        loss = loss_of(module, case, target)
        losses.append(loss.item())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    return losses + [loss_of(module, case, target).item()]


def hortator_losses(options, case, target, folder, way):
    """The same, where the last loss is that of the file which the program has written."""
    on_two_ranks, arguments = WAYS[way]
    log = folder / f"{way}.csv"
    command = (options.launcher if on_two_ranks else []) + [options.program, "--model", folder / "model.pt2", "--inputs", folder / "inputs.safetensors",
               "--target", folder / "target.safetensors", "--steps", str(STEPS), "--lr", str(RATE), "--loss-csv", log, "--run-dir", folder / way, "--cpu",
               "--save", folder / f"{way}.pt2"]
    done = subprocess.run([str(part) for part in command + arguments], env={**os.environ, "OMP_NUM_THREADS": "1"}, capture_output=True, text=True, timeout=300)
    if done.returncode != 0:
        return None, f"exit code {done.returncode}: {(done.stderr.strip() or done.stdout.strip())[:600]}"
    losses = [float(row["loss"]) for row in csv.DictReader(log.open())]
    return losses + [loss_of(torch.export.load(folder / f"{way}.pt2").module(), case, target).item()], ""


def compare(case, options):
    folder = options.folder / case.name
    folder.mkdir(parents=True, exist_ok=True)
    program = exported(case)
    torch.export.save(program, folder / "model.pt2")
    with torch.no_grad():
        first = tensors_in(torch.export.load(folder / "model.pt2").module()(*copied(case.args), **copied(case.kwargs)))[0]
    torch.manual_seed(2)
    target = torch.randn_like(first.contiguous())
    save_file({f"input_{i}": tensor.contiguous() for i, tensor in enumerate(tensors_in((case.args, case.kwargs)))}, folder / "inputs.safetensors")
    save_file({"target": target}, folder / "target.safetensors")
    expected = python_losses(torch.export.load(folder / "model.pt2"), case, target)
    results = {}
    for way in options.ways:
        losses, error = hortator_losses(options, case, target, folder, way)
        if losses is None:
            results[way] = error
        elif len(losses) != STEPS + 1:
            results[way] = f"{len(losses) - 1} steps"
        else:
            worst = max(abs(a - b) / max(1, abs(a)) if b == b else float("inf") for a, b in zip(expected, losses))
            limit = 1e-2 if "bfloat16" in f"{program.graph} {target.dtype}" else 1e-5  # sums of parts are rounded
            results[way] = "" if worst <= limit else f"losses differ by {worst:.2g}"
    return expected, {way: result for way, result in results.items() if result}


def main():
    arguments = sys.argv[1:]
    split = arguments.index("--") if "--" in arguments else len(arguments)
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--families", nargs="*", default=["hand", "odd"])
    parser.add_argument("--only", nargs="*")
    parser.add_argument("--ways", nargs="*", default=list(WAYS))
    options = parser.parse_args(arguments[:split])
    options.launcher = arguments[split + 1:]
    torch.set_num_threads(1)
    wrong = models = 0
    for case in nets.each_case(options.families):
        if options.only and case.name not in options.only:
            continue
        try:
            losses, failures = compare(case, options)
        except subprocess.TimeoutExpired as error:
            losses, failures = [0, 0], {"time": str(error)[:200]}
        except Exception as error:  # of torch.export or of the model in Python: nothing to compare with
            print(f"{case.name}: not trained in Python: {str(error).strip().splitlines()[0][:120]}", flush=True)
            continue
        models += 1
        wrong += bool(failures)
        print(f"{case.name}: {losses[0]:.6g} to {losses[-1]:.6g}", failures or "equal", flush=True)
    print(f"{models - wrong} of {models} models with equal losses")
    sys.exit(wrong > 0 or models == 0)


if __name__ == "__main__":
    main()
