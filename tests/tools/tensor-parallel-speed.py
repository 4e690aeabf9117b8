#!/usr/bin/env python3
"""Compares a training step of a transformer that two ranks divide with the same step of torch.distributed.tensor over gloo, on CPUs:

    tensor-parallel-speed.py HORTATOR [--ranks N] [--rounds N] [--steps N] [--sequence]

HORTATOR is the command, whose `bench tensor` trains the same model on the same batch. Both sides alternate, round by round, and each rank computes with
one thread. Printed are the medians, and their ratio: time of DTensor / time of Hortator. Needs: pip install torch"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import time

os.environ['OMP_NUM_THREADS'] = os.environ['MKL_NUM_THREADS'] = '1'
WIDTH, HEADS, LAYERS, VOCABULARY, BATCH, TOKENS = 256, 8, 4, 1024, 8, 64


def make_model(torch):
    nn, functional = torch.nn, torch.nn.functional

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm_1, self.norm_2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
            self.q, self.k, self.v, self.out = (nn.Linear(WIDTH, WIDTH) for _ in range(4))
            self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

        def forward(self, x):
            y = self.norm_1(x)
            # After DTensor's parallelize_module, a rank's queries are a local tensor of its heads: -1 counts them.
            q, k, v = (part(y).unflatten(-1, (-1, WIDTH // HEADS)).transpose(1, 2) for part in (self.q, self.k, self.v))
            mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.out(mixed.transpose(1, 2).flatten(-2))
            return x + self.down(functional.gelu(self.up(self.norm_2(x)), approximate='tanh'))

    class Gpt(nn.Module):
        def __init__(self):
            super().__init__()
            self.table, self.norm = nn.Embedding(VOCABULARY, WIDTH), nn.LayerNorm(WIDTH)
            self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
            self.scores = nn.Linear(WIDTH, VOCABULARY, bias=False)

        def forward(self, ids):
            x = self.table(ids)
            for block in self.blocks:
                x = block(x)
            return self.scores(self.norm(x))

    return Gpt()


def parallelize(torch, model, mesh, sequence):
    from torch.distributed.tensor import Replicate, Shard
    from torch.distributed.tensor.parallel import (ColwiseParallel, RowwiseParallel, SequenceParallel, parallelize_module)
    rows = {'output_layouts': Shard(1)} if sequence else {}
    for block in model.blocks:
        plan = {name: ColwiseParallel(input_layouts=Shard(1)) if sequence else ColwiseParallel() for name in ('q', 'k', 'v', 'up')}
        plan |= {name: RowwiseParallel(**rows) for name in ('out', 'down')}
        if sequence:
            plan |= {'norm_1': SequenceParallel(), 'norm_2': SequenceParallel()}
        parallelize_module(block, mesh, plan)
    top = {'table': RowwiseParallel(input_layouts=Replicate(), **rows),
           'scores': ColwiseParallel(input_layouts=Shard(1) if sequence else Replicate(), output_layouts=Shard(-1), use_local_output=False)}
    if sequence:
        top['norm'] = SequenceParallel()
    parallelize_module(model, mesh, top)


def dtensor_rank(rank, ranks, steps, sequence):
    import torch
    import torch.distributed as dist
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor.parallel import loss_parallel
    torch.set_num_threads(1)
    os.environ.update(MASTER_ADDR='127.0.0.1', RANK=str(rank), WORLD_SIZE=str(ranks))
    dist.init_process_group('gloo')
    torch.manual_seed(1)
    model = make_model(torch)
    parallelize(torch, model, init_device_mesh('cpu', (ranks,)), sequence)
    optimizer = torch.optim.SGD(model.parameters(), 1e-3)
    ids = (torch.arange(BATCH * TOKENS) * 7 % VOCABULARY).view(BATCH, TOKENS)

    def step():
        with loss_parallel():
            torch.nn.functional.cross_entropy(model(ids).flatten(0, 1), ids.flatten()).backward()
        optimizer.step()
        optimizer.zero_grad()

    for _ in range(3):
        step()
    dist.barrier()
    begin = time.perf_counter()
    for _ in range(steps):
        step()
    dist.barrier()
    if rank == 0:
        print(json.dumps({'median_s': (time.perf_counter() - begin) / steps}), flush=True)
    dist.destroy_process_group()


def dtensor_seconds(options):
    import socket
    with socket.socket() as free:
        free.bind(('127.0.0.1', 0))
        port = free.getsockname()[1]
    command = [sys.executable, __file__, 'rank', '--ranks', str(options.ranks), '--steps', str(options.steps)] + ['--sequence'] * options.sequence
    environment = os.environ | {'MASTER_PORT': str(port)}
    ranks = [subprocess.Popen(command + ['--rank', str(rank)], env=environment, stdout=subprocess.PIPE, text=True) for rank in range(options.ranks)]
    outputs = [rank.communicate()[0] for rank in ranks]
    if any(rank.returncode for rank in ranks):
        sys.exit('a rank of DTensor failed')
    return json.loads(outputs[0].splitlines()[-1])['median_s']


def hortator_seconds(options):
    case = 'sequence' if options.sequence else 'step'
    command = [options.hortator, 'launch', '-n', str(options.ranks), options.hortator, 'bench', 'tensor', '--case', case, '--json', '--blocks', '3',
               '--steps', str(options.steps)]
    output = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
    return json.loads([line for line in output.splitlines() if line.startswith('{')][-1])['median_s']


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('hortator', help='the command, or "rank", by which the script starts its own ranks')
    parser.add_argument('--ranks', type=int, default=2)
    parser.add_argument('--rank', type=int, default=0)
    parser.add_argument('--rounds', type=int, default=5)
    parser.add_argument('--steps', type=int, default=20)
    parser.add_argument('--sequence', action='store_true')
    options = parser.parse_args()
    if options.hortator == 'rank':
        return dtensor_rank(options.rank, options.ranks, options.steps, options.sequence)
    ours, theirs = [], []
    for _ in range(options.rounds):
        theirs.append(dtensor_seconds(options))
        ours.append(hortator_seconds(options))
    ratios = [other / own for other, own in zip(theirs, ours)]
    print(f'Hortator {1e3 * statistics.median(ours):.1f} ms, DTensor over gloo {1e3 * statistics.median(theirs):.1f} ms a step, '
          f'{statistics.median(ratios):.2f} times as long (from {min(ratios):.2f} to {max(ratios):.2f})')


if __name__ == '__main__':
    main()
