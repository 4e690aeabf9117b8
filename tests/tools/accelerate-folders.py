#!/usr/bin/env python3
"""Regenerates tests/unit/accelerator/interop/accelerate: folders written by Accelerate's save_state(), and the results of these runs after it.

    python3 tests/tools/accelerate-folders.py tests/unit/accelerator/interop/accelerate     # needs accelerate
"""

import json
import os
import pathlib
import shutil
import sys

import torch
import torch.distributed.checkpoint as checkpoint
from accelerate import Accelerator


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = torch.nn.Linear(4, 3, bias=False)  # BatchNorm would cancel a bias, except for rounding
        self.norm = torch.nn.BatchNorm1d(3)
        self.fc2 = torch.nn.Linear(3, 1)

    def forward(self, x):
        return self.fc2(torch.tanh(self.norm(self.fc1(x))))


class Progress:
    def __init__(self):
        self.count = 0
        self.seen = torch.zeros(2)

    def state_dict(self):
        return {"count": self.count, "nested": {"seen": self.seen}, "name": "progress", "nothing": None}

    def load_state_dict(self, state):
        raise NotImplementedError


def batch(step):
    x = torch.sin(torch.arange(32, dtype=torch.float32).reshape(8, 4) + step)
    return x, x.sum(1, keepdim=True)


def warmup(step):
    return step / 3 if step < 3 else max(0.0, (20 - step) / 17)


def adamw(net):
    groups = [{"params": [*net.fc1.parameters(), *net.norm.parameters()]}, {"params": net.fc2.parameters(), "lr": 0.02}]
    optimizer = torch.optim.AdamW(groups, lr=0.01, weight_decay=0.1, betas=(0.8, 0.95))
    return optimizer, torch.optim.lr_scheduler.LambdaLR(optimizer, warmup)


def sgd(net, parameters=torch.nn.Module.parameters):
    optimizer = torch.optim.SGD(parameters(net), lr=0.05, momentum=0.9)
    return optimizer, torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.5, patience=0, cooldown=2)


def sgd_by_name(net):
    return sgd(net, torch.nn.Module.named_parameters)


def sequential(net):
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
    parts = [torch.optim.lr_scheduler.LambdaLR(optimizer, shape) for shape in (warmup, lambda step: warmup(step + 1))]
    return optimizer, torch.optim.lr_scheduler.SequentialLR(optimizer, parts, milestones=[3])


def chained(net):
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
    constant = torch.optim.lr_scheduler.ConstantLR(optimizer, factor=0.5, total_iters=7)
    decay = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.9)
    return optimizer, torch.optim.lr_scheduler.ChainedScheduler([constant, decay])


def gather(folder):
    """Converts the folder to what FSDP's FULL_STATE_DICT writes for the same run: one file, with names instead of numbers."""
    (folder / "pytorch_model.bin").rename(folder / "pytorch_model_fsdp.bin")
    state = torch.load(folder / "optimizer.bin")
    net = Net()
    names = {}
    for group, made in zip(state["param_groups"], adamw(net)[0].param_groups):
        there = {id(parameter): name for name, parameter in net.named_parameters()}
        names.update(zip(group["params"], [there[id(parameter)] for parameter in made["params"]]))
        group["params"] = [names[number] for number in group["params"]]
    state["state"] = {names[number]: moments for number, moments in state["state"].items()}
    torch.save(state, folder / "optimizer.bin")


def shard(rank, gathered, folder):
    """Writes the gathered folder as two ranks with FSDP's SHARDED_STATE_DICT do."""
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29577")
    torch.distributed.init_process_group("gloo", rank=rank, world_size=2)
    mesh = torch.distributed.device_mesh.init_device_mesh("cpu", (2,))

    def cut(value):
        if isinstance(value, dict):
            return {name: cut(item) for name, item in value.items()}
        if isinstance(value, torch.Tensor) and value.dim() > 0:
            return torch.distributed.tensor.distribute_tensor(value, mesh, [torch.distributed.tensor.Shard(0)])
        return value

    for name, state, part in (("model", "pytorch_model_fsdp.bin", "pytorch_model_fsdp_0"), ("optimizer", "optimizer.bin", "optimizer_0")):
        checkpoint.save({name: cut(torch.load(gathered / state))}, checkpoint_id=folder / part)
    torch.distributed.destroy_process_group()
    if rank == 0:
        for file in "scheduler.bin", "custom_checkpoint_0.pkl":
            shutil.copy(gathered / file, folder)


def train(accelerator, model, optimizer, schedule, steps, by_metric):
    losses = []
    for step in steps:
        x, y = batch(step)
        loss = torch.nn.functional.mse_loss(model(x), y)
        accelerator.backward(loss)
        optimizer.step()
        schedule.step(loss.item()) if by_metric else schedule.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    return losses


def run(folder, make, by_metric, safe):
    accelerator = Accelerator(cpu=True, step_scheduler_with_optimizer=False)
    torch.manual_seed(1)
    net = Net()
    optimizer, schedule = make(net)
    model, optimizer, schedule = accelerator.prepare(net, optimizer, schedule)
    progress = Progress()
    accelerator.register_for_checkpointing(progress)
    train(accelerator, model, optimizer, schedule, range(5), by_metric)
    progress.count = 5
    progress.seen += 2
    shutil.rmtree(folder, ignore_errors=True)
    accelerator.save_state(str(folder), safe_serialization=safe)
    random = torch.rand(4).tolist()
    losses = train(accelerator, model, optimizer, schedule, range(5, 8), by_metric)
    return {
        "random": random,
        "losses": losses,
        "rates": [group["lr"] for group in optimizer.param_groups],
        "tensors": {name: tensor.flatten().tolist() for name, tensor in net.state_dict().items()},
    }


def main():
    root = pathlib.Path(sys.argv[1])
    root.mkdir(parents=True, exist_ok=True)
    expected = {
        "adamw": run(root / "adamw", adamw, by_metric=False, safe=True),
        "sgd": run(root / "sgd", sgd, by_metric=True, safe=False),
        "named": run(root / "named", sgd_by_name, by_metric=True, safe=False),
        "sequential": run(root / "sequential", sequential, by_metric=False, safe=False),
        "chained": run(root / "chained", chained, by_metric=False, safe=False),
        "gathered": run(root / "gathered", adamw, by_metric=False, safe=False),
    }
    # Accelerate uses a scaler only with CUDA; this is the result of torch.amp.GradScaler.state_dict().
    scaler = {"scale": 1024.0, "growth_factor": 2.0, "backoff_factor": 0.5, "growth_interval": 2000, "_growth_tracker": 7}
    torch.save(scaler, root / "adamw" / "scaler.pt")
    gather(root / "gathered")
    for name in "sgd", "named", "sequential", "chained", "gathered":
        (root / name / "random_states_0.pkl").unlink()
    torch.multiprocessing.spawn(shard, args=(root / "gathered", root / "sharded"), nprocs=2)
    (root / "expected.json").write_text(json.dumps(expected) + "\n")


if __name__ == "__main__":
    main()
