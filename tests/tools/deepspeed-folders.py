#!/usr/bin/env python3
"""Writes the folders of tests/unit/accelerator/interop/accelerate/deepspeed: Accelerate's save_state() with DeepSpeed's ZeRO, on two ranks.

Usage: DS_ACCELERATOR=cpu deepspeed-folders.py FOLDER [CASE...]     needs accelerate and deepspeed (no GPU)

Beside each folder lies <folder>.safetensors: every parameter and its two moments, which this program puts together from what
DeepSpeed's optimizer holds in memory, not from the files; buffers; and the losses of the steps after the save.
"""

import os
import pathlib
import shutil
import sys

import deepspeed
import torch
import torch.multiprocessing as processes
from accelerate import PartialState
from accelerate.checkpointing import save_accelerator_state
from deepspeed.utils import safe_get_full_fp32_param, safe_get_full_optimizer_state
from safetensors.torch import save_file

RANKS = 2


class Net(torch.nn.Module):
    def __init__(self, case):
        super().__init__()
        self.fc1 = torch.nn.Linear(4, 3, bias=False)
        self.norm = torch.nn.LayerNorm(3) if "bf16" in case else torch.nn.BatchNorm1d(3)
        self.fc2 = torch.nn.Linear(3, 1)
        self.frozen = torch.nn.Linear(3, 3)
        for parameter in self.frozen.parameters():
            parameter.requires_grad_(False)
        if "tied" in case:
            self.again = torch.nn.Linear(3, 1, bias=False)
            self.again.weight = self.fc2.weight

    def forward(self, x):
        return self.fc2(torch.tanh(self.frozen(self.norm(self.fc1(x.to(self.fc1.weight.dtype))))))


def warmup(step):
    return step / 3 if step < 3 else max(0.0, (20 - step) / 17)


def batch(step, rank):
    """This rank's half of the batch."""
    x = torch.sin(torch.arange(32, dtype=torch.float32).reshape(8, 4) + step)
    y = x.sum(1, keepdim=True)
    return x[rank * 4:rank * 4 + 4], y[rank * 4:rank * 4 + 4]


def train(engine, schedule, steps, rank):
    losses = []
    for step in steps:
        x, y = batch(step, rank)
        loss = torch.nn.functional.mse_loss(engine(x).float(), y)
        engine.backward(loss)
        engine.step()
        schedule.step()
        mean = loss.detach().clone()
        torch.distributed.all_reduce(mean)
        losses.append(mean.item() / RANKS)
    return losses


def moment_of(engine, parameter, moment):
    if not hasattr(parameter, "_hp_mapping"):
        return safe_get_full_optimizer_state(parameter, moment)
    whole = torch.zeros(parameter.numel())
    own = parameter._hp_mapping  # nothing of it is on this rank: None
    if own is not None:
        zero = engine.optimizer
        flat = zero.optimizer.state[zero.single_partition_of_fp32_groups[own.param_group_index]][moment]
        there, here = own.lp_fragment_address, own.hp_fragment_address
        whole[there.start:there.start + there.numel] = flat[here.start:here.start + here.numel]
    torch.distributed.all_reduce(whole)
    return whole.reshape(parameter.shape)


def everything(engine):
    """Each tensor of the model and each moment, as DeepSpeed gathers them from its ranks' memory."""
    whole = {name: value.clone() for name, value in engine.module.named_buffers()}
    for name, parameter in engine.module.named_parameters():
        if parameter.requires_grad:
            whole[name] = safe_get_full_fp32_param(parameter).clone()
            whole |= {f"{name}@{moment}": moment_of(engine, parameter, moment).clone() for moment in ("exp_avg", "exp_avg_sq")}
        else:
            with deepspeed.zero.GatheredParameters([parameter]):
                whole[name] = parameter.detach().clone()
    return whole


def run(rank, folder, case):
    """Saves as Accelerate does, which itself starts DeepSpeed only on accelerators: the engine's save_checkpoint() and Accelerate's own
    function for the rest."""
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29578", RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(RANKS))
    deepspeed.init_distributed("gloo")
    config = {"train_micro_batch_size_per_gpu": 4, "zero_allow_untested_optimizer": True, "zero_force_ds_cpu_optimizer": False,
              "zero_optimization": {"stage": int(case[0]), "sub_group_size": 6}}
    if "bf16" in case:
        config["bf16"] = {"enabled": True}
    torch.manual_seed(1)
    net = Net(case)
    groups = [{"params": [*net.fc1.parameters(), *net.norm.parameters()]}, {"params": [*net.fc2.parameters()], "lr": 0.02}]
    optimizer = torch.optim.AdamW(groups, lr=0.01, weight_decay=0.1, betas=(0.8, 0.95))
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, warmup)
    engine = deepspeed.initialize(model=net, optimizer=optimizer, config=config)[0]
    train(engine, schedule, range(5), rank)
    name = f"stage{case}"
    engine.save_checkpoint(folder / name, "pytorch_model")
    for program in (folder / name).glob("*.py") if rank == 0 else ():
        program.unlink()  # DeepSpeed copies its converter into each folder
    PartialState(cpu=True)
    save_accelerator_state(str(folder / name), [], [], [schedule], [], rank, 0)
    whole = everything(engine)
    whole["@losses"] = torch.tensor(train(engine, schedule, range(5, 8), rank), dtype=torch.float64)
    whole["@rates"] = torch.tensor([group["lr"] for group in optimizer.param_groups], dtype=torch.float64)
    if rank == 0:
        save_file({name: value.contiguous() for name, value in whole.items()}, folder / f"{name}.safetensors", {"format": "pt"})
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    root = pathlib.Path(sys.argv[1])
    root.mkdir(parents=True, exist_ok=True)
    for case in sys.argv[2:] or ("1", "2", "3", "2bf16", "3bf16", "1tied", "3tied"):
        shutil.rmtree(root / f"stage{case}", ignore_errors=True)
        processes.spawn(run, args=(root, case), nprocs=RANKS)
