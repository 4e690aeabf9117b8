#!/usr/bin/env python3
"""Writes the folders of tests/unit/weights/distributed with torch.distributed.checkpoint, on two ranks (parts: on four).

Usage: distributed-folders.py FOLDER     needs torch and safetensors
"""
import os
import pathlib
import sys

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
import torch.multiprocessing as processes
from safetensors.torch import save_file
from torch.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import Replicate, Shard, distribute_tensor


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.model = torch.nn.Linear(5, 7)  # its name is also that of Accelerate's dict
        self.norm = torch.nn.BatchNorm1d(7)
        self.head = torch.nn.Linear(7, 1, dtype=torch.bfloat16)
        self.tiny = torch.nn.Parameter(torch.rand(1, 3))


def fsdp(folder, rank):
    torch.manual_seed(1)
    model = Model()
    fully_shard(model.model)
    fully_shard(model)
    dcp.save({"model": get_model_state_dict(model)}, checkpoint_id=folder / "fsdp")
    whole = get_model_state_dict(model, options=StateDictOptions(full_state_dict=True))
    if rank == 0:
        save_file({name: tensor.contiguous() for name, tensor in whole.items()}, folder / "fsdp.safetensors", {"format": "pt"})


def parts(folder, rank):
    mesh = init_device_mesh("cpu", (2, 2))
    torch.manual_seed(2)
    whole = {"a.columns": torch.rand(3, 6), "a.boxes": torch.rand(5, 4, 3), "b.rows": torch.arange(7), "b.same": torch.rand(2, 2),
             "b.number": torch.tensor(1.5, dtype=torch.float64), "c.empty": torch.empty(0, 4)}
    cuts = {"a.columns": (Replicate(), Shard(1)), "a.boxes": (Shard(1), Shard(0)), "b.rows": (Shard(0), Shard(0)),
            "b.same": (Replicate(), Replicate())}
    state = {name: distribute_tensor(tensor, mesh, cuts[name]) if name in cuts else tensor for name, tensor in whole.items()}
    nested = {}
    for name, tensor in state.items():
        outer, inner = name.split(".")
        nested.setdefault(outer, {})[inner] = tensor
    dcp.save({**nested, "step": 17}, checkpoint_id=folder / "parts")
    if rank == 0:
        save_file(whole, folder / "parts.safetensors", {"format": "pt"})


def run(rank, ranks, folder, case):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29577")
    dist.init_process_group("gloo", rank=rank, world_size=ranks)
    case(folder, rank)
    dist.destroy_process_group()


if __name__ == "__main__":
    target = pathlib.Path(sys.argv[1])
    target.mkdir(parents=True, exist_ok=True)
    processes.spawn(run, args=(2, target, fsdp), nprocs=2)
    processes.spawn(run, args=(4, target, parts), nprocs=4)
