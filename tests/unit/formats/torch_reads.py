#!/usr/bin/env python3
"""torch_reads.py FILE: Python's torch.load(weights_only=True) takes what pickle_writer_test.cpp wrote, and finds it there."""

import sys
import zipfile

import torch

TYPES = """float64 float32 float16 bfloat16 float8_e4m3fn float8_e5m2 float8_e4m3fnuz float8_e5m2fnuz float8_e8m0fnu uint8 int8
int16 int32 int64 uint16 uint32 uint64 bool complex32 complex64 complex128""".split()


def raw(tensor):
    return tensor.contiguous().reshape(-1).view(torch.uint8).tolist() if tensor.numel() else []


def main():
    assert zipfile.ZipFile(sys.argv[1]).testzip() is None, "a checksum is wrong"
    for mmap in False, True:
        state = torch.load(sys.argv[1], weights_only=True, mmap=mmap)
        matrix = torch.arange(12.0).reshape(3, 4)
        expected = {name: torch.arange(6.0).reshape(2, 3).to(getattr(torch, name)) for name in TYPES}
        expected |= {
            "scalar": torch.tensor(2.5),
            "empty": torch.empty(0, 3),
            "transposed": matrix.T,
            "columns": matrix[:, 1:3],
            "expanded": torch.full((2, 3), 7.0),
            "large.number": torch.tensor([2**40]),
            "embedding.weight": torch.arange(4.0),
            "head.weight": torch.arange(4.0).reshape(2, 2),
            "résumé": torch.ones(300, dtype=torch.float16),
        }
        assert list(state) == list(expected), f"other names: {list(state)}"
        for name, tensor in expected.items():
            found = state[name]
            assert found.dtype == tensor.dtype and found.shape == tensor.shape, f"{name} is {found.dtype} {found.shape}"
            assert raw(found) == raw(tensor), f"{name} differs: {found}"
        assert state["embedding.weight"].data_ptr() == state["head.weight"].data_ptr(), "tied tensors came apart"
    print(f"torch {torch.__version__} reads {len(expected)} tensors, from memory and mapped")


if __name__ == "__main__":
    main()
