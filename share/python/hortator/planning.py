"""The plans of `hortator plan` as a table of pandas."""

import json
import os
import shutil
import subprocess

import pandas


def _program():
    program = os.environ.get("HORTATOR") or shutil.which("hortator")
    if program is None:
        raise FileNotFoundError("No program 'hortator' on PATH: plans are made by it. Load its module, or set the variable HORTATOR to its path")
    return program


def plan(command, ranks=None, nodes=None, ranks_per_node=None, memory=None, machine=None, arguments=()):
    """The runs with which `command` (a program and its arguments) fits into the memory, the fastest first: a row each,
    with the options of `hortator launch` in `flags`. Runs the program, as `hortator plan` does.

    `memory`: of a rank, such as "80GiB". `machine`: a file of `hortator bench machine`. `arguments`: further options of
    `hortator plan`. `attrs` holds `machine`, `rejected` (runs that do not fit) and `not_used` (settings that the program
    cannot use, with the reason). Raises RuntimeError with the message of `hortator plan` if it fails.
    """
    options = {"--ranks": ranks, "--nodes": nodes, "--ranks-per-node": ranks_per_node, "--memory": memory, "--machine": machine}
    call = [_program(), "plan", "--json"]
    for name, value in options.items():
        if value is not None:
            call += [name, str(value)]
    answer = subprocess.run([*call, *map(str, arguments), "--", *map(str, command)], capture_output=True, text=True)
    try:
        plans = json.loads(answer.stdout)
    except ValueError:
        raise RuntimeError(answer.stderr.strip() or answer.stdout.strip()) from None
    frame = pandas.json_normalize(plans["best"])
    frame.attrs = {
        "machine": plans["machine"],
        "rejected": plans["rejected"],  # a list: pandas compares attrs when it prints, and tables have no truth value
        "not_used": plans["not_used"],
    }
    return frame
