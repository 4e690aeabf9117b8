#!/usr/bin/env python3
"""Records the operators of one step of a PyTorch program, for `hortator compare-runs`.

    from record_operators import OperatorRecorder
    OperatorRecorder(model, optimizer, "runs/python", step=1)     before the loop, which stays as it is

The step ends with the given update of the optimizer, and begins after the one before. The folder then compares with one
that `hortator launch --record-operators` has written. Under torch.distributed each rank writes its own file.
"""
import json
import math
import os
import pathlib

import torch
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

VERSION = 1
BLOCK = 4096
MASK = (1 << 64) - 1
TYPES = {torch.float32: "Float", torch.float64: "Double", torch.float16: "Half", torch.bfloat16: "BFloat16",
         torch.int64: "Long", torch.int32: "Int", torch.int16: "Short", torch.int8: "Char", torch.uint8: "Byte",
         torch.bool: "Bool", torch.complex64: "ComplexFloat", torch.complex128: "ComplexDouble",
         torch.uint16: "UInt16", torch.uint32: "UInt32", torch.uint64: "UInt64", torch.complex32: "ComplexHalf",
         torch.float8_e4m3fn: "Float8_e4m3fn", torch.float8_e5m2: "Float8_e5m2"}
WITHOUT_SUMS = {"UInt16", "UInt32", "UInt64", "Float8_e4m3fn", "Float8_e5m2"}  # as in C++
WITHOUT_VALUES = {"aten::" + name for name in (
    "empty", "empty_like", "empty_strided", "empty_permuted", "new_empty", "new_empty_strided", "resize_", "set_",
    "record_stream", "_unsafe_view", "_reshape_alias", "detach", "detach_", "requires_grad_", "_fused_sdp_choice")}


def mix(state, number):
    """The finaliser of splitmix64, as core::mix."""
    bits = ((state ^ number) + 0x9E3779B97F4A7C15) & MASK
    bits = ((bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    bits = ((bits ^ (bits >> 27)) * 0x94D049BB133111EB) & MASK
    return bits ^ (bits >> 31)


def signed(number):
    """The 64 bits as LibTorch's type has them, whose products and sums are the same bits."""
    return number - (1 << 64) if number >> 63 else number


WEIGHTS = torch.tensor([signed(mix(0, i) | 1) for i in range(BLOCK)])
SCATTER = signed(0x9E3779B97F4A7C15), signed(0xBF58476D1CE4E5B9)


def units_of(tensor):
    """The elements as numbers of at most 32 bits, and the bytes of each."""
    dense = tensor.detach().resolve_conj().resolve_neg().cpu().contiguous().reshape(-1)
    size = min(dense.element_size(), 4)
    units = dense.view({1: torch.uint8, 2: torch.int16, 4: torch.int32}[size]).long()
    return units & ((1 << 8 * size) - 1), size


def brief(tensor):
    """Type, sizes and the hash of the bits."""
    units, size = units_of(tensor)
    bits = mix(size, len(units))
    whole = len(units) // BLOCK * BLOCK
    sums = (units[:whole].view(-1, BLOCK) * WEIGHTS).sum(1).tolist()
    if whole < len(units):
        sums.append(int((units[whole:] * WEIGHTS[:len(units) - whole]).sum()))
    for block in sums:
        bits = mix(bits, block & MASK)
    return [TYPES.get(tensor.dtype, str(tensor.dtype)), list(tensor.shape), f"{bits:016x}"]


def number(value):
    return value if math.isfinite(value) else "NaN"


def whole(tensor):
    """The same, with the hash of the elements in any order, their sum, and the sum of their absolute values."""
    product = units_of(tensor)[0] * SCATTER[0]
    elements = int(((product ^ ((product >> 32) & 0xFFFFFFFF)) * SCATTER[1]).sum()) & MASK
    total = norm = math.nan
    if not tensor.dtype.is_complex and not tensor.is_quantized and TYPES.get(tensor.dtype) not in WITHOUT_SUMS:
        values = tensor.detach().double()
        total, norm = float(values.sum()), float(values.abs().sum())
    if not math.isfinite(norm):
        total = norm = math.nan
    return [*brief(tensor), f"{elements:016x}", number(total), number(norm)]


def module_of(parameter):
    return parameter.rpartition(".")[0] or parameter


def is_view(schema):
    return any(result.alias_info is not None and not result.alias_info.is_write for result in schema.returns)


def tensors_in(values):
    return [leaf for leaf in pytree.tree_leaves(values) if isinstance(leaf, torch.Tensor)]


def has_memory(tensor):
    return tensor.layout == torch.strided


class OperatorRecorder(TorchDispatchMode):
    """Records from now on, or from the update before the step on, until the optimizer has made that step."""

    def __init__(self, model, optimizer, folder, step=1):
        super().__init__()
        self.file = pathlib.Path(folder) / f"rank-{int(os.environ.get('RANK', 0)):05d}.jsonl"
        self.file.parent.mkdir(parents=True, exist_ok=True)
        self.file.unlink(missing_ok=True)
        self.model, self.step, self.updates = model, step, 0
        self.records, self.near, self.near_of, self.is_update = [], "", {}, False
        self.is_recording = False
        optimizer.register_step_pre_hook(lambda *_: self.before_update())
        optimizer.register_step_post_hook(lambda *_: self.after_update())
        if step == 1:
            self.begin()

    def begin(self):
        self.spans = {}
        for name, parameter in self.model.named_parameters():
            begin = parameter.storage_offset()
            span = (begin, begin + parameter.numel(), module_of(name))
            self.spans.setdefault(parameter.untyped_storage()._cdata, []).append(span)
        self.note("parameter", self.model.named_parameters())
        self.is_recording = True
        self.__enter__()

    def path_of(self, tensor):
        for begin, end, path in self.spans.get(tensor.untyped_storage()._cdata, []):
            if begin <= tensor.storage_offset() < end:
                return path
        return ""

    def note(self, name, tensors):
        for path, tensor in tensors:
            if tensor is not None:
                self.records.append(
                    {"op": name, "path": path, "near": path, "backward": False, "in": [], "out": [whole(tensor)]})

    def before_update(self):
        if self.is_recording:
            with torch.utils._python_dispatch._disable_current_modes():
                self.note("gradient", ((name, one.grad) for name, one in self.model.named_parameters()))
            self.is_update = True

    def after_update(self):
        self.updates += 1
        if self.is_recording:
            self.is_recording = False
            self.__exit__(None, None, None)
            self.note("updated parameter", self.model.named_parameters())
            self.write()
        elif self.updates + 1 == self.step:
            self.begin()

    def write(self):
        header = {"hortator_operators": VERSION, "step": self.step, "rank": int(os.environ.get("RANK", 0)),
                  "ranks": int(os.environ.get("WORLD_SIZE", 1))}
        lines = [header, *self.records, {"operators": len(self.records)}]
        self.file.write_text("".join(json.dumps(line) + "\n" for line in lines))

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        schema = func._schema
        if is_view(schema) or schema.name in WITHOUT_VALUES:
            return func(*args, **kwargs)
        inputs = [one for one in tensors_in((args, kwargs)) if has_memory(one)]
        path = next(filter(None, map(self.path_of, inputs)), "")
        before = [brief(one) for one in inputs]
        result = func(*args, **kwargs)
        if schema.returns:
            results = tensors_in(result)
        else:
            results = tensors_in([value for value, argument in zip(args, schema.arguments)
                                  if argument.alias_info is not None and argument.alias_info.is_write])
        if results:
            self.add(schema.name, path, inputs, before, [whole(one) for one in results if has_memory(one)])
        return result

    # The function of autograd has got its number before this; in backward it is the one that runs.
    def add(self, name, path, inputs, before, results):
        node = torch._C._current_autograd_node()
        if self.is_update:
            self.near, path = "update", ""
        elif path:
            self.near = path
        elif node is not None:
            self.near = self.near_of.get(node._sequence_nr(), self.near)
        if node is None and any(one.requires_grad for one in inputs):
            self.near_of[torch.autograd._get_sequence_nr() - 1] = self.near
        self.records.append({"op": name, "path": path, "near": self.near, "backward": node is not None, "in": before,
                             "out": results})
