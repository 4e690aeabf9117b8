"""Checkpoints of Hortator as arrays of numpy or tensors of PyTorch. HDF5 is not needed: the manifest says where each element is."""

import json
import pathlib
import re
import struct

import numpy

_FORMAT = 2
_FILE_NAME = re.compile(r"(state|frozen)(-\d+)?\.h5")
# Types that both have by name. complex32 and the types of 8 bits exist in PyTorch only.
_NUMPY_TYPES = {
    name: name
    for name in ("uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64", "float16", "float32", "float64", "complex64", "complex128")
}
_NUMPY_TYPES["bool"] = "bool"
_BYTES_OF_OTHERS = {"bfloat16": 2, "complex32": 4, "float8_e5m2": 1, "float8_e5m2fnuz": 1, "float8_e4m3fn": 1, "float8_e4m3fnuz": 1}


class CheckpointError(Exception):
    """A checkpoint that cannot be read."""


def _value_of(value):
    if isinstance(value, dict) and "real" in value:
        return struct.unpack(">d", bytes.fromhex(value["real"]))[0]
    if isinstance(value, dict) and "bytes" in value:
        return bytes.fromhex(value["bytes"])
    return value


def read_manifest(folder):
    """The manifest of a checkpoint: a dict with `step`, `world_size`, `values` (numbers and texts by name), `datasets`
    (type and shape of each tensor) and more. Raises CheckpointError if the folder is not a complete checkpoint."""
    folder = pathlib.Path(folder)
    file = folder / "manifest.json"
    if not file.is_file():
        below = sorted(path.parent.name for path in folder.glob("*/manifest.json")) if folder.is_dir() else []
        hint = f"it holds the checkpoints {', '.join(below)}" if below else "name the folder that has a manifest.json"
        raise CheckpointError(f"{str(folder)!r} is not a complete checkpoint: {hint}")
    try:
        manifest = json.loads(file.read_text(encoding="utf-8"))
    except ValueError as error:
        raise CheckpointError(f"{str(file)!r} is damaged: {error}. `hortator checkpoint verify` names the damage") from error
    if manifest.get("format") != _FORMAT:
        raise CheckpointError(f"{str(file)!r}: expected format {_FORMAT}, got {manifest.get('format')}: use this package as it comes with the Hortator that wrote it")
    for entry in manifest["files"]:
        if not _FILE_NAME.fullmatch(entry["name"]):
            raise CheckpointError(f"{str(file)!r}: {entry['name']!r} is not the name of a file of a checkpoint")
        path = folder / entry["name"]
        size = path.stat().st_size if path.is_file() else None
        if size != entry["bytes"]:
            found = "it is missing" if size is None else f"it has {size}"
            raise CheckpointError(f"{str(path)!r}: expected {entry['bytes']} bytes, and {found}. `hortator checkpoint verify` names all damage")
    manifest["values"] = {name: _value_of(value) for name, value in manifest["values"].items()}
    return manifest


def _element_bytes(kind, name):
    if kind in _NUMPY_TYPES:
        return numpy.dtype(_NUMPY_TYPES[kind]).itemsize
    if kind in _BYTES_OF_OTHERS:
        return _BYTES_OF_OTHERS[kind]
    raise CheckpointError(f"{name!r} has the unknown type {kind!r}")


def _read_bytes(folder, manifest, name, dataset):
    """The tensor's bytes, from all of its pieces."""
    each = _element_bytes(dataset["type"], name)
    count = int(numpy.prod(dataset["shape"], dtype=numpy.int64))
    content = bytearray(count * each)
    at = 0
    for number, offset, begin, end in dataset["pieces"]:
        file = folder / manifest["files"][number]["name"]
        with open(file, "rb") as stream:
            stream.seek(offset)
            view = memoryview(content)[begin * each : end * each]
            if begin != at or stream.readinto(view) != len(view):
                raise CheckpointError(f"{str(file)!r}: the elements {begin} to {end} of {name!r} cannot be read")
        at = end
    if at != count:
        raise CheckpointError(f"{name!r}: the manifest has {at} of {count} elements")
    return content


def _as_numpy(content, kind, shape, name):
    if kind in _NUMPY_TYPES:
        return numpy.frombuffer(content, dtype=numpy.dtype(_NUMPY_TYPES[kind]).newbyteorder("<")).reshape(shape)
    if kind == "bfloat16":  # the upper half of a float32, with the same value
        return (numpy.frombuffer(content, dtype="<u2").astype("<u4") << 16).view("<f4").reshape(shape)
    try:
        import ml_dtypes
    except ImportError:
        ml_dtypes = None
    if not hasattr(ml_dtypes, kind):
        raise CheckpointError(f"{name!r} has the type {kind}, which numpy does not have: use load_checkpoint(..., torch=True), or install ml_dtypes")
    return numpy.frombuffer(content, dtype=getattr(ml_dtypes, kind)).reshape(shape)


def _as_torch(content, kind, shape, name):
    import torch

    if not hasattr(torch, kind):
        raise CheckpointError(f"{name!r} has the type {kind}, which this PyTorch does not have")
    if not content:
        return torch.empty(shape, dtype=getattr(torch, kind))
    return torch.frombuffer(content, dtype=getattr(torch, kind)).reshape(shape)


def load_checkpoint(folder, prefix="", torch=False):
    """The tensors of a checkpoint by name, as arrays of numpy or, with `torch`, as tensors of PyTorch. Numpy has no
    bfloat16: these become float32, with the same values.

    With `prefix`, only those below it, by the rest of their names: load_checkpoint(folder, "models/0", torch=True) is
    the state dict of the first model that was prepared. Raises CheckpointError for a damaged checkpoint or an unknown
    prefix. Numbers and texts are in read_manifest(folder)["values"]. Checksums are not compared:
    `hortator checkpoint verify` does that.
    """
    folder = pathlib.Path(folder)
    manifest = read_manifest(folder)
    begin = prefix.rstrip("/") + "/" if prefix else ""
    convert = _as_torch if torch else _as_numpy
    tensors = {}
    for name, dataset in manifest["datasets"].items():
        if not name.startswith(begin):
            continue
        content = _read_bytes(folder, manifest, name, dataset)
        tensors[name[len(begin) :]] = convert(content, dataset["type"], dataset["shape"], name)
    if not tensors and prefix:
        known = sorted({"/".join(name.split("/")[:2]) for name in manifest["datasets"]})
        raise CheckpointError(f"No tensor below {prefix!r} in {str(folder)!r}; it has {', '.join(known)}")
    return tensors
