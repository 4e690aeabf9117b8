#!/usr/bin/env python3
"""Regenerates tests/unit/formats/pickles: files written by torch.save, and expected.json with the tensors in them.

    python3 tests/tools/torch-pickles.py tests/unit/formats/pickles
"""

import argparse
import collections
import json
import pathlib
import pickle
import sys
import zipfile

import torch

FLOATS = ["float64", "float32", "float16", "bfloat16"]
FLOATS_OF_8_BITS = ["float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu"]
INTEGERS = ["uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64"]


def of_type(name):
    values = torch.tensor([[0.0, 1.0, 2.0], [4.0, 8.0, 16.0]], dtype=torch.float32)
    return values.to(getattr(torch, name))


def raw(tensor):
    """The elements' bytes in row-major order."""
    flat = tensor.detach().resolve_conj().resolve_neg().contiguous().reshape(-1)
    return flat.view(torch.uint8).numpy().tobytes() if flat.numel() else b""


def shapes():
    matrix = torch.arange(12, dtype=torch.float32).reshape(3, 4)
    return {
        "scalar": torch.tensor(2.5),
        "empty": torch.empty(0),
        "no_rows": torch.empty(0, 3, dtype=torch.int64),
        "no_columns": torch.empty(3, 0),
        "matrix": matrix,
        "transposed": matrix.T,
        "columns": matrix[:, 1:3],
        "last_row": matrix[2],
        "every_other": matrix[::2],
        "expanded": torch.tensor([7.0]).expand(2, 3),
        "channels_last": torch.arange(16.0).reshape(1, 2, 2, 4).to(memory_format=torch.channels_last),
    }


class Tied(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = torch.nn.Embedding(4, 2)
        self.norm = torch.nn.BatchNorm1d(2)
        self.head = torch.nn.Linear(2, 4, bias=False)
        self.head.weight = self.embedding.weight


def nested():
    return {
        "epoch": 3,
        "best": 0.25,
        "name": "résumé",
        "done": True,
        "nothing": None,
        "huge": 2**70,
        "negative": -(2**40),
        "sizes": torch.Size([2, 3]),
        "pair": (1, [2, "three"]),
        "state_dict": collections.OrderedDict(weight=torch.ones(2)),
        "moments": [torch.zeros(1), {7: torch.full((1,), 7.0)}],
    }


def tensors_in(value, name=""):
    if isinstance(value, torch.Tensor):
        yield name, value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from tensors_in(item, f"{name}.{key}" if name else str(key))
    elif isinstance(value, (list, tuple)):
        for index, item in enumerate(value):
            yield from tensors_in(item, f"{name}.{index}" if name else str(index))


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(0)
    good = {
        "floats": {name: of_type(name) for name in FLOATS},
        "floats_of_8_bits": {name: of_type(name) for name in FLOATS_OF_8_BITS},
        "integers": {name: of_type(name) for name in INTEGERS},
        "bool": {"bool": torch.tensor([True, False, True])},
        "complex": {name: of_type(name) for name in ["complex32", "complex64", "complex128"]},
        "shapes": shapes(),
        "tied": Tied().state_dict(),
        "parameter": {"weight": torch.nn.Parameter(torch.arange(3.0))},
        "nested": nested(),
        "tensor": torch.arange(2.0),
    }
    expected = {}
    for name, value in good.items():
        torch.save(value, folder / f"{name}.pt")
        expected[name] = {
            part: {"dtype": str(tensor.dtype).removeprefix("torch."), "shape": list(tensor.shape), "hex": raw(tensor).hex()}
            for part, tensor in tensors_in(value)
        }
    (folder / "expected.json").write_text(json.dumps(expected, indent=1) + "\n")

    weight = {"weight": torch.ones(2)}
    torch.save(weight, folder / "legacy.pt", _use_new_zipfile_serialization=False)
    torch.save(weight, folder / "protocol_4.pt", pickle_protocol=4)
    torch.save({"args": argparse.Namespace(lr=1), **weight}, folder / "foreign.pt")
    torch.save({"count": collections.Counter("aab"), **weight}, folder / "counter.pt")
    torch.save({"conjugate": torch.ones(2, dtype=torch.complex64).conj()}, folder / "conjugate.pt")
    torch.jit.save(torch.jit.script(torch.nn.Linear(1, 1)), folder / "script.pt")
    (folder / "pickle.pt").write_bytes(pickle.dumps({"weight": [1.0]}, protocol=2))
    with zipfile.ZipFile(folder / "bool.pt") as stored:
        with zipfile.ZipFile(folder / "compressed.pt", "w", zipfile.ZIP_DEFLATED) as packed:
            for name in stored.namelist():
                packed.writestr(name, stored.read(name))


if __name__ == "__main__":
    main()
