#!/usr/bin/env python3
"""Weights in 8 and 4 bits for the tests of hortator::quantise, packed by bitsandbytes' CPU back end:

    packed_oracle.py FILE SEED   writes random matrices, their bytes and scales, and what they are unpacked to

Needs: pip install torch bitsandbytes."""
import sys

import bitsandbytes.functional as bnb
import torch
from safetensors.torch import save_file

torch.manual_seed(int(sys.argv[2]))
tensors = {}
for number, (rows, columns, group) in enumerate([(8, 64, 64), (5, 192, 64), (12, 96, 32), (3, 50, 64), (7, 128, 128), (4, 33, 64), (6, 1, 64)]):
    weight = torch.randn(rows, columns) * torch.rand(rows, 1)
    weight[0] = 0
    key = f'{number}.{group}'
    tensors[f'{key}.weight'] = weight
    if columns > 1 or rows * columns % 2 == 0:
        packed, state = bnb.quantize_4bit(weight, blocksize=group, quant_type='nf4', compress_statistics=False)
        tensors[f'{key}.nf4.numbers'] = packed.flatten()
        tensors[f'{key}.nf4.scales'] = state.absmax
        tensors[f'{key}.nf4.unpacked'] = torch.ops.bitsandbytes.dequantize_4bit.default(packed, state.absmax, group, 'nf4', weight.shape, torch.float32)
    numbers, scales, _ = torch.ops.bitsandbytes.int8_vectorwise_quant.default(weight.clone())
    numbers[weight.abs().amax(1) == 0] = 0  # divided by zero there
    tensors[f'{key}.int8.numbers'] = numbers
    tensors[f'{key}.int8.scales'] = scales
    tensors[f'{key}.int8.unpacked'] = torch.ops.bitsandbytes.int8_vectorwise_dequant.default(numbers, scales)
save_file({name: value.contiguous() for name, value in tensors.items()}, sys.argv[1])
