#!/usr/bin/env python3
"""Compiles a Python model for inference on this machine, as a package that hortator::load_compiled() runs.

    compile_for_hortator.py net.py:make -o net.pt2              make() returns a module and example inputs
    compile_for_hortator.py path/to/checkpoint -o net.pt2       a Hugging Face folder with config.json and weights

The first dimension of all inputs, and the length of texts, may have any size from 2 on. The package holds code only: the
weights are written beside it, as weights.safetensors (weights.pt without the module safetensors), and can be replaced by any
other weights of the same model. Needs PyTorch 2.9 or newer, the version of your LibTorch, and a C++ compiler; and
transformers for Hugging Face folders. In a program of yours, call compile_model():

    from compile_for_hortator import compile_model
    compile_model(net, (x,), "net.pt2")
"""
import argparse
import importlib.util
import pathlib
import types

import torch
from torch.export import Dim
from torch.utils import _pytree as pytree


def write_weights(net, folder):
    tensors = {name: value.detach().clone().contiguous() for name, value in (*net.named_parameters(), *net.named_buffers())}
    try:
        from safetensors.torch import save_file
    except ImportError:
        torch.save(tensors, folder / "weights.pt")
    else:
        save_file(tensors, folder / "weights.safetensors", {"format": "pt"})


def compile_model(net, args, path, dimensions=1):
    """Compiles the evaluation form of a module. `dimensions`: how many dimensions of each input may have other sizes."""
    path = pathlib.Path(path)
    net.eval()
    shapes = pytree.tree_map(lambda x: {i: Dim.AUTO for i in range(min(dimensions, x.dim()))} if isinstance(x, torch.Tensor) else None, tuple(args))
    with torch.no_grad():
        program = torch.export.export(net, tuple(args), dynamic_shapes=shapes)
    notes = {"hortator_torch": torch.__version__, "hortator_weights": "beside"}
    torch._inductor.aoti_compile_and_package(program, package_path=str(path), inductor_configs={
        "aot_inductor.package_constants_in_so": False, "aot_inductor.metadata": notes, "always_keep_tensor_constants": True})
    write_weights(net, path.parent)


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
    net, args, dimensions = from_checkpoint(given.model) if pathlib.Path(given.model).is_dir() else from_function(given.model)
    compile_model(net, args, given.output, given.dimensions if given.dimensions is not None else dimensions)


if __name__ == "__main__":
    main()
