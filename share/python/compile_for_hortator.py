#!/usr/bin/env python3
"""Compiles a Python model for inference on this machine, as a package that hortator::load_compiled() runs.

    compile_for_hortator.py net.py:make -o net.pt2              make() returns a module and example inputs
    compile_for_hortator.py path/to/checkpoint -o net.pt2       a Hugging Face folder with config.json and weights

The first dimension of all inputs, and the length of texts, may have any size from 2 on. The package holds code only: the
weights are written beside it, as net.weights.safetensors (net.weights.pt without the module safetensors), and can be replaced by any other
weights of the same model. Weights that are not contiguous become so, in the module as well. Needs PyTorch 2.9 or newer, the version of your LibTorch, and a C++ compiler; and
transformers for Hugging Face folders. In a program of yours, call compile_model():

    from compile_for_hortator import compile_model
    compile_model(net, (x,), "net.pt2")
"""
import argparse
import importlib.util
import json
import pathlib
import sys
import types

import torch
from torch.export import Dim
from torch.export.graph_signature import InputKind
from torch.utils import _pytree as pytree


def write_weights(tensors, package):
    tensors = {name: value.detach().clone() for name, value in tensors.items()}
    safe, pickled = package.with_suffix(".weights.safetensors"), package.with_suffix(".weights.pt")
    safe.unlink(missing_ok=True)
    pickled.unlink(missing_ok=True)
    try:
        from safetensors.torch import save_file
    except ImportError:
        torch.save(tensors, pickled)
    else:
        save_file(tensors, safe, {"format": "pt"})


def make_contiguous(net):
    """Compiled code has the strides of the weights in it, and files have none."""
    for value in (*net.parameters(), *net.buffers()):
        value.data = value.data.contiguous()


def weights_of(program):
    """All tensors that the code reads, by the first of their names, and all names of each."""
    for spec in program.graph_signature.input_specs:  # tensors of forward itself become weights with names
        if spec.kind == InputKind.CONSTANT_TENSOR:
            spec.kind, spec.persistent = InputKind.BUFFER, False
    tensors, names, first = {}, {}, {}
    for name, value in (*program.state_dict.items(), *program.constants.items()):
        if not isinstance(value, torch.Tensor):
            continue
        memory = (value.data_ptr(), value.dtype, tuple(value.shape), value.stride()) if value.numel() else name
        if memory not in first:
            first[memory] = name
            tensors[name] = value.contiguous()
            names[name] = []
        names[first[memory]].append(name)
    return tensors, names


def note_of(program, tensors, names):
    """What load_compiled() must know. Constants are in no checkpoint: non-persistent buffers, and tensors of forward itself."""
    return json.dumps([{"names": names[name], "shape": list(value.shape), "type": str(value.dtype).removeprefix("torch."),
                        "constant": name not in program.state_dict} for name, value in tensors.items()])


def compile_model(net, args, path, dimensions=1):
    """Compiles the evaluation form of a module. `dimensions`: how many dimensions of each input may have other sizes."""
    path = pathlib.Path(path)
    were_training = [module for module in net.modules() if module.training]
    net.eval()
    make_contiguous(net)
    shapes = pytree.tree_map(lambda x: {i: Dim.AUTO for i in range(min(dimensions, x.dim()))} if isinstance(x, torch.Tensor) else None, tuple(args))
    with torch.no_grad():
        program = torch.export.export(net, tuple(args), dynamic_shapes=shapes)
    for module in were_training:
        module.training = True
    tensors, names = weights_of(program)
    notes = {"hortator_torch": torch.__version__, "hortator_weights": note_of(program, tensors, names)}
    torch._inductor.aoti_compile_and_package(program, package_path=str(path), inductor_configs={
        "aot_inductor.package_constants_in_so": False, "aot_inductor.metadata": notes, "always_keep_tensor_constants": True})
    write_weights(tensors, path)


def from_checkpoint(folder):
    """The base model of a Hugging Face folder, from token numbers and their mask to its last hidden states."""
    from transformers import AutoModel

    net = AutoModel.from_pretrained(folder, attn_implementation="sdpa")
    original = net.forward

    def forward(self, input_ids, attention_mask):
        return original(input_ids=input_ids, attention_mask=attention_mask, return_dict=True).last_hidden_state

    net.forward = types.MethodType(forward, net)
    ids = torch.randint(0, net.config.vocab_size, (3, 17))
    return net, (ids, torch.ones_like(ids)), 2


def from_function(source):
    file, _, name = source.rpartition(":")
    sys.path.insert(0, str(pathlib.Path(file).resolve().parent))
    spec = importlib.util.spec_from_file_location("model_to_compile", file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    net, args = getattr(module, name)()
    return net, args, 1


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", help="FILE.py:FUNCTION, or a Hugging Face folder")
    parser.add_argument("-o", "--output", required=True, help="the package to write")
    parser.add_argument("--dimensions", type=int, help="leading dimensions of each input that may have other sizes (default: 1, and 2 for folders)")
    given = parser.parse_args()
    if not pathlib.Path(given.model).is_dir() and ".py:" not in given.model:
        parser.error(f"model: expected FILE.py:FUNCTION or a folder, got '{given.model}'")
    net, args, dimensions = from_checkpoint(given.model) if pathlib.Path(given.model).is_dir() else from_function(given.model)
    compile_model(net, args, given.output, given.dimensions if given.dimensions is not None else dimensions)


if __name__ == "__main__":
    main()
