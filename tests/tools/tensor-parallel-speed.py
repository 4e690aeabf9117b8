#!/usr/bin/env python3
"""Compares a training step of a transformer that two ranks divide with the same step of torch.distributed.tensor over gloo, on CPUs:

    tensor-parallel-speed.py HORTATOR [--ranks N] [--rounds N] [--steps N] [--sequence]

HORTATOR is the command, whose `bench tensor` trains the same model on the same batch. Both sides alternate, round by round, and each rank computes with
one thread. Printed are the medians, and their ratio: time of DTensor / time of Hortator. Needs: pip install torch"""
import argparse

import gloo_ranks

WIDTH, HEADS, LAYERS, VOCABULARY, BATCH, TOKENS = 256, 8, 4, 1024, 8, 64


def make_model(torch):
    nn = torch.nn
    Block = gloo_ranks.make_block(torch, WIDTH, HEADS)

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
    gloo_ranks.join(torch, dist, rank, ranks)
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

    gloo_ranks.time_steps(dist, step, steps)
    dist.destroy_process_group()


def dtensor_seconds(options):
    return gloo_ranks.run([__file__, 'rank', '--ranks', str(options.ranks), '--steps', str(options.steps)] + ['--sequence'] * options.sequence, options.ranks)


def hortator_seconds(options):
    return gloo_ranks.bench(options, ['tensor', '--case', 'sequence' if options.sequence else 'step'])


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
    gloo_ranks.compare(lambda: hortator_seconds(options), lambda: dtensor_seconds(options), options.rounds, 'DTensor over gloo')


if __name__ == '__main__':
    main()
