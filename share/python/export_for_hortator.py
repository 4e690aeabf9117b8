#!/usr/bin/env python3
"""Writes a Python model as a .pt2 file, which hortator::exported_module() and torch.export.load() read.

    export_for_hortator.py net.py:make -o net.pt2       make() returns a module and example inputs
    export_for_hortator.py path/to/checkpoint -o net.pt2      a Hugging Face folder with config.json and weights

The file has the model's parameters and two forms of its graph, for training and for evaluation, which share them. Needs
PyTorch 2.9 or newer, and transformers for Hugging Face folders. In a program of yours, call write_model():

    from export_for_hortator import write_model
    write_model(net, (x,), "net.pt2")
"""
import argparse
import importlib.util
import inspect
import json
import os
import pathlib
import sys
import tempfile

import torch
from torch.export import Dim
from torch.utils import _pytree as pytree

WEIGHTS, EVAL_WEIGHTS = "data/weights/model_weights_config.json", "data/weights/eval_weights_config.json"


def dynamic_rows(net, args, kwargs, dimensions=1):
    """Dynamic shapes whose first dimensions may have any size, for all tensors of the arguments, by the names that the
    parameters of forward have."""

    def of(leaf):
        if not isinstance(leaf, torch.Tensor):
            return None
        return {dimension: Dim.AUTO for dimension in range(min(dimensions, leaf.dim()))}

    bound = inspect.signature(net.forward).bind(*args, **kwargs).arguments
    return {name: pytree.tree_map(of, value) for name, value in bound.items()}


def export_forms(net, args, kwargs=None, dynamic_shapes=None, forms=("train", "eval")):
    """Exports the forms of a module: {"model": program, "eval": program}. All modules keep their modes, and the buffers their values."""
    modes = {module: module.training for module in net.modules()}
    buffers = {name: buffer.clone() for name, buffer in net.named_buffers()}
    programs = {}
    try:
        for form in forms:
            net.train(form == "train")
            program = torch.export.export(net, tuple(args), kwargs or {}, dynamic_shapes=dynamic_shapes)
            programs["eval" if programs else "model"] = program
    finally:
        for module, mode in modes.items():
            module.training = mode
        with torch.no_grad():
            for name, buffer in net.named_buffers():
                buffer.copy_(buffers[name])
    return programs


def share_weights(reader, writer):
    """Copies an archive, without the weights of the evaluation form: it uses those of the model, by their names."""
    names = reader.get_file_names()
    weights = json.loads(reader.read_string(WEIGHTS))["config"]
    of_evaluation = json.loads(reader.read_string(EVAL_WEIGHTS))["config"] if EVAL_WEIGHTS in names else {}
    shared = {name: weights.get(name) for name in of_evaluation}
    if None in shared.values():
        raise RuntimeError("the form for evaluation has other parameters or buffers than the one for training")
    kept = {entry["path_name"] for entry in weights.values()}
    left_out = {"data/weights/" + entry["path_name"] for entry in of_evaluation.values() if entry["path_name"] not in kept}
    for name in names:
        if name in left_out or name.startswith(".data/") or name in ("byteorder", "version"):
            continue  # the last ones are the writer's
        data = reader.read_bytes(name)
        writer.write_bytes(name, json.dumps({"config": shared}).encode() if name == EVAL_WEIGHTS else data)


def write_forms(programs, path):
    """Writes the programs of export_forms(). A reader of `path` finds the whole file or none."""
    from torch.export.pt2_archive._package import PT2ArchiveReader, PT2ArchiveWriter, package_pt2

    path = pathlib.Path(path)
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        os.mkdir(os.path.join(folder, "whole"))
        whole, shared = (os.path.join(folder, part, path.stem + ".pt2") for part in ("whole", ""))  # archives hold the name
        package_pt2(whole, exported_programs=programs)
        if len(programs) == 1:
            os.replace(whole, path)
            return
        with PT2ArchiveReader(whole) as reader, PT2ArchiveWriter(shared) as writer:
            share_weights(reader, writer)
        os.replace(shared, path)


def write_model(net, args, path, kwargs=None, dynamic_shapes="rows", forms=("train", "eval")):
    """Exports a module and writes it. `dynamic_shapes` are those of torch.export.export; "rows": the first dimension of
    every input is free, and sizes that the model fixes are kept; None: all sizes are fixed."""
    if dynamic_shapes == "rows":
        dynamic_shapes = dynamic_rows(net, args, kwargs or {})
    write_forms(export_forms(net, args, kwargs, dynamic_shapes, forms), path)


class TextModel(torch.nn.Module):
    """A model of transformers with token ids and their mask as inputs, and its first result as output."""

    def __init__(self, net):
        super().__init__()
        self.net = net
        net.config.use_cache = False

    def forward(self, input_ids, attention_mask):
        return self.net(input_ids=input_ids, attention_mask=attention_mask, return_dict=False)[0]


class ImageModel(torch.nn.Module):
    """A model of transformers with images as input, and its first result as output."""

    def __init__(self, net):
        super().__init__()
        self.net = net

    def forward(self, pixel_values):
        return self.net(pixel_values=pixel_values, return_dict=False)[0]


def without_wrapper(path):
    """The path of a module within TextModel or ImageModel in the model itself: "layers" of "net.layers"."""
    return "" if path == "net" else path.removeprefix("net.")


def unwrapped_names(programs):
    """Gives parameters, buffers and modules the names of the model within TextModel or ImageModel: without "net."."""
    for program in programs.values():
        for module in program.graph_module.modules():
            for node in getattr(getattr(module, "graph", None), "nodes", ()):
                stack = node.meta.get("nn_module_stack")
                if stack:
                    node.meta["nn_module_stack"] = {key: (without_wrapper(path), kind) for key, (path, kind) in stack.items()}
        signature = program.graph_signature
        for spec in signature.input_specs + signature.output_specs:
            if spec.target is not None:
                spec.target = spec.target.removeprefix("net.")
        for tensors in (program._state_dict, program._constants):
            for name in list(tensors):
                tensors[name.removeprefix("net.")] = tensors.pop(name)
    return programs


def hugging_face_model(folder):
    """The model of a folder, wrapped, with example inputs and the number of their dynamic dimensions."""
    import transformers

    config = transformers.AutoConfig.from_pretrained(folder)
    names = config.architectures or []
    make = getattr(transformers, names[0]) if names and hasattr(transformers, names[0]) else transformers.AutoModel
    net = make.from_pretrained(folder, attn_implementation="sdpa") if make._supports_sdpa else make.from_pretrained(folder)
    net = net.float()
    if hasattr(config, "num_local_experts"):
        net.set_experts_implementation("batched_mm")  # in operators of PyTorch
    if net.main_input_name == "pixel_values":
        size = getattr(config, "image_size", 224)
        height, width = (size, size) if isinstance(size, int) else size
        return ImageModel(net), (torch.zeros(2, getattr(config, "num_channels", 3), height, width),), 1
    tokens = torch.arange(14).view(2, 7) % (config.get_text_config().vocab_size - 1) + 1
    return TextModel(net), (tokens, torch.ones_like(tokens)), 2


def made_by(function):
    """What a function in a file returns: "net.py:make" calls make()."""
    file, _, name = function.rpartition(":")
    sys.path.insert(0, str(pathlib.Path(file).resolve().parent))
    spec = importlib.util.spec_from_file_location(pathlib.Path(file).stem, file)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    net, *inputs = getattr(module, name)()
    args = inputs[0] if inputs else ()
    return net, args if isinstance(args, tuple) else (args,), inputs[1] if len(inputs) > 1 else {}


def main():
    parser = argparse.ArgumentParser(description="Writes a Python model as a .pt2 file for hortator::exported_module().")
    parser.add_argument("model", help="FILE.py:FUNCTION, which returns a module, a tuple of example inputs and possibly a dict of more; "
                                      "or a Hugging Face folder")
    parser.add_argument("-o", "--output", required=True, help="the .pt2 file to write")
    parser.add_argument("--static", action="store_true", help="fix all sizes to those of the example inputs")
    parser.add_argument("--dynamic-dimensions", type=int, metavar="N", help="leave the first N dimensions of each input free; default: 1, of texts 2")
    parser.add_argument("--form", choices=("both", "train", "eval"), default="both", help="forms of the graph to write; default: both")
    options = parser.parse_args()

    is_folder = os.path.isdir(options.model)
    kwargs = {}
    if is_folder:
        net, args, dimensions = hugging_face_model(options.model)
    elif ".py:" in options.model:
        (net, args, kwargs), dimensions = made_by(options.model), 1
    else:
        parser.error(f"model: expected FILE.py:FUNCTION or a folder, got '{options.model}'")
    shapes = None if options.static else dynamic_rows(net, args, kwargs, options.dynamic_dimensions or dimensions)
    forms = ("train", "eval") if options.form == "both" else (options.form,)
    programs = export_forms(net, args, kwargs, shapes, forms)
    write_forms(unwrapped_names(programs) if is_folder else programs, options.output)
    print(f"{options.output}: {len(programs['model'].state_dict)} parameters and buffers, forms: {', '.join(forms)}")


if __name__ == "__main__":
    main()
