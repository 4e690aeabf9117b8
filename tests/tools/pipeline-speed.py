#!/usr/bin/env python3
"""Compares a step of a pipeline with the same step and schedule of torch.distributed.pipelining over gloo, on CPUs:

    pipeline-speed.py HORTATOR [--schedule gpipe|1f1b|interleaved] [--ranks N] [--rounds N] [--steps N]

HORTATOR is the command, whose `bench pipeline` trains the same layers on batches of the same size. Both sides alternate, round by round, and each rank
computes with one thread. Printed are the medians, and their ratio: time of torch / time of Hortator. Needs: pip install torch numpy"""
import argparse

import gloo_ranks

# as in share/bench/parallel/pipeline.cpp
WIDTH, HEADS, LAYERS_OF_RANK, MICRO_BATCHES_OF_RANK, ROWS, TOKENS = 256, 8, 4, 4, 2, 128


def pipeline_rank(rank, ranks, steps, name):
    import torch
    import torch.distributed as dist
    from torch.distributed import pipelining
    gloo_ranks.join(torch, dist, rank, ranks)
    torch.manual_seed(1)
    Block = gloo_ranks.make_block(torch, WIDTH, HEADS)
    stages_of_rank = 2 if name == 'interleaved' else 1
    count = ranks * stages_of_rank
    layers = [torch.nn.Sequential(*(Block() for _ in range(LAYERS_OF_RANK // stages_of_rank))) for _ in range(stages_of_rank)]
    stages = [pipelining.PipelineStage(part, rank + i * ranks, count, torch.device('cpu')) for i, part in enumerate(layers)]
    micro_batches = MICRO_BATCHES_OF_RANK * ranks
    schedules = {'gpipe': pipelining.ScheduleGPipe, '1f1b': pipelining.Schedule1F1B, 'interleaved': pipelining.ScheduleInterleaved1F1B}
    schedule = schedules[name](stages if stages_of_rank > 1 else stages[0], micro_batches, loss_fn=lambda output, target: output.square().mean())
    parameters = [parameter for part in layers for parameter in part.parameters()]
    optimizer = torch.optim.SGD(parameters, 1e-3)
    batch = torch.randn(ROWS * micro_batches, TOKENS, WIDTH)

    def step():
        schedule.step(*([batch] if rank == 0 else []), **({'target': batch} if rank == ranks - 1 else {}))
        optimizer.step()
        optimizer.zero_grad()

    gloo_ranks.time_steps(dist, step, steps)
    dist.destroy_process_group()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('hortator', help='the command, or "rank", by which the script starts its own ranks')
    parser.add_argument('--schedule', choices=['gpipe', '1f1b', 'interleaved'], default='1f1b')
    parser.add_argument('--ranks', type=int, default=2)
    parser.add_argument('--rank', type=int, default=0)
    parser.add_argument('--rounds', type=int, default=5)
    parser.add_argument('--steps', type=int, default=10)
    options = parser.parse_args()
    if options.hortator == 'rank':
        return pipeline_rank(options.rank, options.ranks, options.steps, options.schedule)

    def theirs():
        command = [__file__, 'rank', '--ranks', str(options.ranks), '--steps', str(options.steps), '--schedule', options.schedule]
        return gloo_ranks.run(command, options.ranks)

    gloo_ranks.compare(lambda: gloo_ranks.bench(options, ['pipeline', '--case', options.schedule]), theirs, options.rounds,
                       'torch.distributed.pipelining over gloo')


if __name__ == '__main__':
    main()
