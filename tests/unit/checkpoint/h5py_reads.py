"""Compares every dataset of an HDF5 file, as h5py reads it, with what the test program says is in it.

    h5py_reads.py EXPECTED FILE...
"""

import pathlib
import sys

import h5py
import numpy


def expected_in(folder):
    for line in (folder / "index").read_text().splitlines():
        number, name, kind, shape = line.split("\t")
        is_complex = kind.startswith("complex")
        values = numpy.fromfile(folder / number, dtype="complex128" if is_complex else "float64")
        yield name, kind, values.reshape([int(size) for size in shape.split(",") if size])


def compare(name, found, kind, expected):
    assert found.shape == expected.shape, f"{name}: shape {found.shape}, not {expected.shape}"
    # numpy has no float of 8 bits, and none of 16 with as many of exponent as bfloat16: h5py takes the next wider
    fits = found.dtype.kind == "f" if kind == "wider" else found.dtype == numpy.dtype(kind)
    assert fits, f"{name}: type {found.dtype}, not {kind}"
    assert numpy.array_equal(found.astype(expected.dtype), expected), f"{name}: other values"


def main():
    expected = list(expected_in(pathlib.Path(sys.argv[1])))
    for path in sys.argv[2:]:
        with h5py.File(path, "r") as file:
            found = []
            file.visititems(lambda name, thing: found.append(name) if isinstance(thing, h5py.Dataset) else None)
            shared = sorted(name for name in found if not name.startswith("ranks/"))
            assert shared == sorted(name for name, _, _ in expected), f"{path} holds {shared}"
            for name, kind, values in expected:
                compare(name, numpy.asarray(file[name][()]), kind, values)
            ranks = [name for name in found if name.startswith("ranks/")]
            for name in ranks:
                rank = int(name.split("/")[1])
                compare(name, file[name][()], "uint8", numpy.full(rank + 3, float(rank)))
            print(f"{path}: {len(expected)} tensors and those of {len(ranks)} ranks are equal")
            assert len(expected) > 20 and ranks


main()
