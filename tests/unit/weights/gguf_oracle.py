#!/usr/bin/env python3
"""Tensors of each type as GGUF files have them, and their values, by llama.cpp's Python package:

    gguf_oracle.py FOLDER [SEED]    writes FOLDER/types.gguf and FOLDER/types.safetensors

Needs: pip install gguf safetensors"""
import pathlib
import sys

import gguf
import numpy
from gguf.quants import dequantize, quantize
from safetensors.numpy import save_file

folder = pathlib.Path(sys.argv[1])
random = numpy.random.default_rng(int(sys.argv[2]) if len(sys.argv) > 2 else 0)
kinds = gguf.GGMLQuantizationType
ROWS, COLUMNS = 3, 512


def half(values):
    return numpy.asarray(values, numpy.float16).view(numpy.uint8)


def random_blocks(kind):
    """Random bytes, with factors that are finite."""
    elements, size = gguf.GGML_QUANT_SIZES[kind]
    blocks = random.integers(0, 256, (ROWS * COLUMNS // elements, size), numpy.uint8)
    for block in blocks:
        places = (0, 2) if kind == kinds.Q4_K else (size - 2,)
        for place in places:
            block[place:place + 2] = half([random.normal() / 64])
    return blocks.reshape(ROWS, -1)


def main():
    writer = gguf.GGUFWriter(folder / 'types.gguf', 'test')
    writer.add_description('types')
    writer.add_array('a.list', ['one', 'two', 'three'])
    writer.add_array('numbers', [1, 2, 3])
    expected = {}
    for kind in (kinds.F32, kinds.F16, kinds.BF16, kinds.Q8_0, kinds.Q4_0, kinds.Q4_1, kinds.Q4_K, kinds.Q6_K):
        values = random.normal(size=(ROWS, COLUMNS)).astype(numpy.float32)
        if kind in (kinds.F32, kinds.F16):
            stored = values.astype(numpy.float32 if kind == kinds.F32 else numpy.float16)
        elif kind in (kinds.Q4_K, kinds.Q6_K):
            stored = random_blocks(kind)
        else:
            stored = quantize(values, kind)
        name = kind.name.lower()
        writer.add_tensor(name, stored, raw_dtype=kind)
        expected[name] = numpy.ascontiguousarray(dequantize(stored, kind), numpy.float32)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    save_file(expected, folder / 'types.safetensors')


main()
