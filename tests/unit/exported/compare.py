#!/usr/bin/env python3
"""compare.py PROGRAM FOLDER [FAMILY...] [--only NAME...]: exports models, and compares outputs and gradients of the
example program `exported` with those of Python's ep.module(), bit by bit. Prints a line for each model; fails if one
differs."""
import argparse
import os
import pathlib
import subprocess
import sys
import warnings

import torch
from safetensors.torch import load_file, save_file
from torch.utils import _pytree as pytree

import nets

warnings.filterwarnings("ignore")


class Failure(Exception):
    """The program `exported` failed."""


def tensors_in(value):
    return [leaf for leaf in pytree.tree_leaves(value) if isinstance(leaf, torch.Tensor)]


def exported(case):
    net = case.net.eval() if case.evaluates else case.net.train()
    program = torch.export.export(net, case.args, case.kwargs, dynamic_shapes=case.dynamic_shapes)
    return program.run_decompositions() if case.decomposed else program


def python_results(program, args, kwargs):
    """Outputs, and gradients of the sum of all outputs."""
    module = program.module()
    torch.manual_seed(0)
    outputs = tensors_in(module(*args, **kwargs))
    trained = [output.sum() for output in outputs if output.requires_grad]
    sum(trained[1:], trained[0]).backward()
    gradients = {name: parameter.grad for name, parameter in module.named_parameters() if parameter.grad is not None}
    return {f"output_{i}": output.detach() for i, output in enumerate(outputs)}, gradients


def hortator_results(program, file, folder, args, kwargs):
    inputs, outputs, gradients = (folder / f"{name}.safetensors" for name in ("inputs", "outputs", "gradients"))
    save_file({f"input_{i}": tensor.contiguous() for i, tensor in enumerate(tensors_in((args, kwargs)))}, inputs)
    command = [program, "--model", file, "--inputs", inputs, "--outputs", outputs, "--gradients", gradients, "--run-dir", folder, "--cpu"]
    done = subprocess.run(command, env={**os.environ, "OMP_NUM_THREADS": "1"}, capture_output=True, text=True, timeout=120)
    if done.returncode != 0:
        raise Failure(f"exit code {done.returncode}: {done.stderr.strip() or done.stdout.strip()}"[:1500])
    return load_file(outputs), load_file(gradients)


def differences(expected, found, what):
    for name, tensor in expected.items():
        other = found.get(name)
        if other is None:
            yield f"{what} {name} is missing"
        elif other.shape != tensor.shape or other.dtype != tensor.dtype:
            yield f"{what} {name} is {other.dtype} {list(other.shape)}, not {tensor.dtype} {list(tensor.shape)}"
        elif not tensor.contiguous().flatten().view(torch.uint8).equal(other.flatten().view(torch.uint8)):
            yield f"{what} {name} differs by {(other.double() - tensor.double()).abs().max().item() if not tensor.is_complex() else '?'}"


def copied(value):
    return pytree.tree_map(lambda leaf: leaf.clone(memory_format=torch.preserve_format) if isinstance(leaf, torch.Tensor) else leaf, value)


def compare(case, options):
    folder = options.folder / case.name
    folder.mkdir(parents=True, exist_ok=True)
    program = exported(case)
    torch.export.save(program, folder / "model.pt2")
    found = []
    for args in [case.args] + ([case.more_args] if case.more_args else []):
        loaded = torch.export.load(folder / "model.pt2")
        expected = python_results(loaded, *copied((args, case.kwargs)))
        results = hortator_results(options.program, folder / "model.pt2", folder, *copied((args, case.kwargs)))
        for before, after, what in zip(expected, results, ("output", "gradient")):
            found += differences(before, after, what)
    return found, len(program.graph.nodes)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("families", nargs="*", default=["hand", "odd", "torchvision", "transformers", "random"])
    parser.add_argument("--only", nargs="*")
    options = parser.parse_args()
    torch.set_num_threads(1)
    counts = {"equal": 0, "different": 0, "failed in Python": 0}
    for case in nets.each_case(options.families):
        if options.only and case.name not in options.only:
            continue
        try:
            found, nodes = compare(case, options)
            result = "different" if found else "equal"
            line = "; ".join(found[:3])
        except (Failure, subprocess.TimeoutExpired) as error:
            result, nodes, line = ("different", 0, str(error))
        except Exception as error:  # of torch.export or of the model in Python: nothing to compare with
            result, nodes, line = "failed in Python", 0, str(error).strip().splitlines()[0][:200]
        counts[result] += 1
        print(f"{case.name}: {result}, {nodes} nodes {line}", flush=True)
    print(", ".join(f"{count} {name}" for name, count in counts.items()))
    sys.exit(counts["different"] > 0 or counts["equal"] == 0)


if __name__ == "__main__":
    main()
