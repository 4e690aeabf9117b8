#!/usr/bin/env python3
"""Simulates a week of a large run at published failure rates, with and without checkpoints in memory, and prints a table.

  week.py [PERFORMANCE_MD]    with a file: exit code 1 unless it holds the table as it is printed

Failures come at random (exponential times, fixed seeds, the mean of 200 weeks). Each repeats the steps since the last checkpoint and costs the time to
start again. Checkpoints are taken at Young's interval of their cost. The costs are assumptions of the table, named in its heading.
"""
import math
import pathlib
import random
import sys

WEEK = 7 * 24 * 3600.0
WEEKS = 200
START = 7.0  # from the failure to the first call of load_state(), in seconds
CLUSTERS = [  # accelerators, hours between failures, source in performance.md
    ("1,024", 7.9, "[1]"),
    ("16,384", 3.1, "[2]"),
    ("16,384", 1.8, "[1]"),
    ("131,072", 14 / 60, "[1]"),
]
DISK = {"save": 60.0, "load": 60.0}
ASYNCHRONOUS = {"save": 5.0, "load": 60.0}
MEMORY = {"save": 0.1, "load": 2.0}


def useful_share(between, costs, generator):
    """The share of a week that a run spends on steps that it does not repeat."""
    interval = math.sqrt(2 * costs["save"] * between)
    now = useful = 0.0
    while now < WEEK:
        until = min(generator.expovariate(1 / between), WEEK - now)
        useful += interval * (until // (interval + costs["save"]))  # what a checkpoint has kept
        now += until + START + costs["load"]
    return useful / WEEK


def mean_share(between, costs):
    generator = random.Random(1)
    return sum(useful_share(between, costs, generator) for _ in range(WEEKS)) / WEEKS


def percent(share):
    return f"{share * 100:.1f} %"


def table():
    rows = ["| accelerators | time between failures | saves of 60 s | asynchronous saves of 5 s | in memory, 0.1 s | job time saved in a week |", "|---|---|---|---|---|---|"]
    for name, hours, source in CLUSTERS:
        shares = [mean_share(hours * 3600, costs) for costs in (DISK, ASYNCHRONOUS, MEMORY)]
        saved = [(shares[2] - share) * WEEK / 3600 for share in shares[:2]]
        time = f"{hours:g} h" if hours >= 1 else f"{hours * 60:g} min"
        rows.append(f"| {name} | {time} {source} | {percent(shares[0])} | {percent(shares[1])} | {percent(shares[2])} | {saved[0]:.1f} h, {saved[1]:.1f} h |")
    return "\n".join(rows) + "\n"


def main():
    printed = table()
    print(printed, end="")
    if len(sys.argv) > 1 and printed not in pathlib.Path(sys.argv[1]).read_text():
        sys.exit(f"{sys.argv[1]} does not hold this table")


main()
