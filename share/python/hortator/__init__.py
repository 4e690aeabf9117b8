"""Reads runs, scaling studies and checkpoints of Hortator, and plans runs.

    import hortator
    run = hortator.read_run("runs/train")            # a pandas.DataFrame: a row for each logged step
    run["loss"].plot()
    runs = hortator.read_runs("runs/sweep")          # a row for each task of an array or a sweep
    study = hortator.read_study("runs/scale")        # a row for each run of `hortator scale`
    weights = hortator.load_checkpoint("runs/train/checkpoint", "models/0")
    plans = hortator.plan(["./train"], nodes=8, memory="80GiB")

It only reads files, so that it works on any machine that sees the folder, also while the run continues.
"""

from .checkpoint import load_checkpoint, read_manifest
from .planning import plan
from .runs import read_ranks, read_run, read_runs, read_study

__all__ = ["load_checkpoint", "plan", "read_manifest", "read_ranks", "read_run", "read_runs", "read_study"]
