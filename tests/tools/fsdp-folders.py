#!/usr/bin/env python3
"""Writes the folders of tests/unit/accelerator/interop/accelerate/fsdp: Accelerate's own functions for FSDP2 with a sharded model, on two ranks.

Usage: fsdp-folders.py FOLDER     needs accelerate (no GPU: Accelerate itself starts FSDP only on accelerators, so this calls its functions)

Beside the folder lies sharded.safetensors: the whole tensors and moments as torch.distributed gathers them from memory, and the losses of
the steps after the save.
"""

import os
import pathlib
import shutil
import sys
import types

import torch
import torch.multiprocessing as processes
from accelerate import FullyShardedDataParallelPlugin, PartialState
from accelerate.checkpointing import save_accelerator_state
from accelerate.utils.fsdp_utils import save_fsdp_model, save_fsdp_optimizer
from safetensors.torch import save_file
from torch.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict, get_optimizer_state_dict
from torch.distributed.fsdp import fully_shard

RANKS = 2


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = torch.nn.Linear(4, 3, bias=False)
        self.norm = torch.nn.LayerNorm(3)
        self.fc2 = torch.nn.Linear(3, 1)

    def forward(self, x):
        return self.fc2(torch.tanh(self.norm(self.fc1(x))))


def warmup(step):
    return step / 3 if step < 3 else max(0.0, (20 - step) / 17)


def train(model, optimizer, schedule, steps, rank):
    losses = []
    for step in steps:
        x = torch.sin(torch.arange(32, dtype=torch.float32).reshape(8, 4) + step)
        y = x.sum(1, keepdim=True)
        mine = slice(rank * 4, rank * 4 + 4)
        loss = torch.nn.functional.mse_loss(model(x[mine]), y[mine])
        loss.backward()
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
        mean = loss.detach().clone()
        torch.distributed.all_reduce(mean)
        losses.append(mean.item() / RANKS)
    return losses


def everything(model, optimizer):
    options = StateDictOptions(full_state_dict=True)
    whole = {name: tensor.clone() for name, tensor in get_model_state_dict(model, options=options).items()}
    for name, moments in get_optimizer_state_dict(model, optimizer, options=options)["state"].items():
        whole |= {f"{name}@{moment}": moments[moment].clone() for moment in ("exp_avg", "exp_avg_sq")}
    return whole


def run(rank, folder):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29579", RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(RANKS))
    state = PartialState(cpu=True)
    torch.manual_seed(1)
    net = Net()
    fully_shard(net.fc1)
    fully_shard(net)
    groups = [{"params": [*net.fc1.parameters(), *net.norm.parameters()]}, {"params": [*net.fc2.parameters()], "lr": 0.02}]
    optimizer = torch.optim.AdamW(groups, lr=0.01, weight_decay=0.1, betas=(0.8, 0.95))
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, warmup)
    train(net, optimizer, schedule, range(5), rank)
    plugin = FullyShardedDataParallelPlugin(fsdp_version=2, state_dict_type="SHARDED_STATE_DICT")
    accelerator = types.SimpleNamespace(is_fsdp2=True, process_index=rank, num_processes=RANKS, is_main_process=rank == 0,
                                        wait_for_everyone=state.wait_for_everyone)
    target = folder / "sharded"
    target.mkdir(parents=True, exist_ok=True)
    save_fsdp_model(plugin, accelerator, net, str(target), 0)
    save_fsdp_optimizer(plugin, accelerator, optimizer, net, str(target), 0)
    save_accelerator_state(str(target), [], [], [schedule], [], rank, 0)
    whole = everything(net, optimizer)
    whole["@losses"] = torch.tensor(train(net, optimizer, schedule, range(5, 8), rank), dtype=torch.float64)
    if rank == 0:
        save_file({name: value.contiguous() for name, value in whole.items()}, folder / "sharded.safetensors", {"format": "pt"})
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    root = pathlib.Path(sys.argv[1])
    shutil.rmtree(root / "sharded", ignore_errors=True)
    processes.spawn(run, args=(root,), nprocs=RANKS)
