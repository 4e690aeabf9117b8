#!/usr/bin/env python3
"""Whether parts of a computation have the bits of the whole, on this CPU, and at what price (share/doc/decisions.md).

    PYTHONPATH=.deps/libtorch [MKL_CBWR=COMPATIBLE] python3 tests/tools/product-bits.py

For 200 shapes: products of a block of columns against the same columns of the whole product (what tensor parallelism does to weights in columns),
products of a block of rows (what a divided batch does), products whose inner dimension is summed in 8 fixed blocks (weights in rows), norms and
attention over some of the rows and heads. Each line: how many shapes have equal bits, and the time over that of the plain computation.
"""
import os
import random
import time

import torch

F = torch.nn.functional
PARTS, TILE = (2, 4, 8), 64


def by_mkl(x, w):
    return x @ w.t()


def by_onednn(x, w):
    return torch.ops.mkldnn._linear_pointwise(x, w, None, "none", [], "")


def in_tiles(x, w):
    """Columns in tiles of a fixed width, each a product of its own."""
    return torch.cat([x @ tile.t() for tile in w.split(TILE)], 1)


def in_blocks(x, w):
    """The inner dimension in 8 blocks, added along a tree."""
    terms = [a @ b.t() for a, b in zip(x.chunk(8, 1), w.chunk(8, 1))]
    while len(terms) > 1:
        terms = [a + b for a, b in zip(terms[::2], terms[1::2])]
    return terms[0]


def columns_agree(product, x, w):
    whole = product(x, w)
    return all(torch.equal(torch.cat([product(x, part) for part in w.chunk(parts)], 1), whole) for parts in PARTS)


def rows_agree(product, x, w):
    whole = product(x, w)
    return all(torch.equal(torch.cat([product(part, w) for part in x.chunk(parts)]), whole) for parts in PARTS)


def inner_agrees(x, w):
    """The sum over ranks. Each adds its blocks along the tree."""

    def of_rank(a, b, blocks):
        terms = [c @ d.t() for c, d in zip(a.chunk(blocks, 1), b.chunk(blocks, 1))]
        while len(terms) > 1:
            terms = [c + d for c, d in zip(terms[::2], terms[1::2])]
        return terms[0]

    whole = in_blocks(x, w)
    for ranks in PARTS:
        terms = [of_rank(a, b, 8 // ranks) for a, b in zip(x.chunk(ranks, 1), w.chunk(ranks, 1))]
        while len(terms) > 1:
            terms = [a + b for a, b in zip(terms[::2], terms[1::2])]
        if not torch.equal(terms[0], whole):
            return False
    return True


def best_time(work, *arguments):
    def once():
        begin = time.perf_counter()
        work(*arguments)
        return time.perf_counter() - begin

    return min(once() for _ in range(3))


def report(name, equal, count, price=None):
    print(f"{name:58} {equal:3} of {count}" + (f"   x {price:.2f}" if price else ""), flush=True)


torch.set_num_threads(1)
torch.manual_seed(1)
random.seed(1)
rows, widths = (8, 24, 64, 128, 200), (64, 128, 192, 256, 384, 512, 768)
shapes = [(random.choice(rows), random.choice(widths), random.choice(widths)) for _ in range(200)]
data = [(torch.randn(m, k), torch.randn(n, k)) for m, k, n in shapes]
plain = sum(best_time(by_mkl, x, w) for x, w in data)
print(f"LibTorch {torch.__version__}, {torch.backends.cpu.get_cpu_capability()}, MKL_CBWR={os.environ.get('MKL_CBWR', '')}")
for name, product in (("MKL", by_mkl), ("oneDNN", by_onednn), (f"MKL, columns in tiles of {TILE}", in_tiles)):
    price = sum(best_time(product, x, w) for x, w in data) / plain
    fits = [(x, w) for x, w in data if product is not in_tiles or w.size(0) % (8 * TILE) == 0]
    report(f"{name}: blocks of columns", sum(columns_agree(product, x, w) for x, w in fits), len(fits), price)
    report(f"{name}: blocks of rows", sum(rows_agree(product, x, w) for x, w in data), len(data))
price = sum(best_time(in_blocks, x, w) for x, w in data) / plain
report("MKL, inner dimension in 8 blocks: over 2, 4, 8 ranks", sum(inner_agrees(x, w) for x, w in data), len(data), price)
agree = sum(torch.equal(torch.cat([F.layer_norm(part, part.shape[1:]) for part in x.chunk(8)]), F.layer_norm(x, x.shape[1:])) for x, _ in data)
report("layer norm: blocks of rows", agree, len(data))
agree = 0
for m, k, _ in shapes[:50]:
    q, k, v = (torch.randn(2, 8, m, k // 8) for _ in range(3))
    whole = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    parts = [F.scaled_dot_product_attention(a, b, c, is_causal=True) for a, b, c in zip(*(t.chunk(4, 1) for t in (q, k, v)))]
    agree += torch.equal(torch.cat(parts, 1), whole)
report("attention: blocks of heads", agree, 50)
