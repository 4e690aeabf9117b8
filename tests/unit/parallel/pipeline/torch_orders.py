#!/usr/bin/env python3
"""Prints the orders in which torch.distributed.pipelining computes micro-batches, for torch_orders.txt:
   PYTHONPATH=.deps/libtorch python3 tests/unit/parallel/pipeline/torch_orders.py > tests/unit/parallel/pipeline/torch_orders.txt
"""
import types

from torch.distributed.pipelining import schedules


def sign_of(action):
    return {"FORWARD": "F", "FULL_BACKWARD": "B"}[action.computation_type.name]


def text(actions):
    return " ".join(f"{sign_of(a)}{a.stage_index}.{a.microbatch_index}" for a in actions if a is not None and a.computation_type.name in ("FORWARD", "FULL_BACKWARD"))


def single(kind, ranks, micro_batches):
    this = types.SimpleNamespace(_num_stages=ranks, _n_microbatches=micro_batches)
    return kind._get_pipeline_order(this)


def interleaved(ranks, stages, micro_batches):
    rounds = max(1, micro_batches // ranks)
    this = types.SimpleNamespace(pp_group_size=ranks, n_local_stages=stages, _n_microbatches=micro_batches,
                                 number_of_rounds=rounds, microbatches_per_round=micro_batches // rounds)
    plan = schedules.ScheduleInterleaved1F1B._calculate_single_rank_operations
    return {rank: plan(this, rank) for rank in range(ranks)}


for ranks in (2, 3, 4):
    for micro_batches in (ranks, ranks + 1, 2 * ranks, 8, 12):
        orders = [("gpipe", 1, single(schedules.ScheduleGPipe, ranks, micro_batches)),
                  ("1f1b", 1, single(schedules.Schedule1F1B, ranks, micro_batches))]
        for stages in (2, 3):
            if micro_batches % max(1, micro_batches // ranks) == 0:
                orders.append(("interleaved", stages, interleaved(ranks, stages, micro_batches)))
        for name, stages, order in orders:
            for rank, actions in order.items():
                if name == "1f1b" and rank == ranks - 1:
                    continue  # torch's text for the last rank begins with micro-batch 1; what it runs begins with 0
                print(f"{name} {ranks} {stages} {micro_batches} {rank}: {text(actions)}")
