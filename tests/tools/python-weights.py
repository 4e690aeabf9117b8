#!/usr/bin/env python3
"""`write FOLDER` writes a model's weights with Python's libraries, for tests/unit/accelerator/weights/python_weights. The same model
is in tests/unit/accelerator/weights/weights_model.hpp. `check FOLDER` reads what the tests have written with the same libraries.
Needs: pip install torch safetensors==0.8.0 accelerate==1.15.0"""
import pathlib
import sys

import torch
from accelerate import Accelerator, load_checkpoint_in_model
from accelerate.utils import OffloadedWeightsLoader
from safetensors.torch import load_file, save_file

TYPES = ['bool', 'uint8', 'int8', 'int16', 'uint16', 'int32', 'uint32', 'int64', 'uint64', 'float16', 'bfloat16', 'float32', 'float64',
         'complex64', 'float8_e4m3fn', 'float8_e5m2', 'float8_e4m3fnuz', 'float8_e5m2fnuz']


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = torch.nn.Embedding(6, 4)
        self.hidden = torch.nn.Linear(4, 5)
        self.norm = torch.nn.BatchNorm1d(5)
        self.head = torch.nn.Linear(4, 6, bias=False)
        self.head.weight = self.embed.weight


def filled():
    net = Net()
    with torch.no_grad():
        for number, tensor in enumerate(net.state_dict().values()):
            tensor.copy_((torch.arange(tensor.numel()) / 8 + number).view(tensor.shape))
    return net


def all_types():
    tensors = {f'a.{name}': (torch.arange(6) % 4).view(2, 3).to(getattr(torch, name)) for name in TYPES}
    tensors['scalar'] = torch.tensor(2.5)
    tensors['empty'] = torch.zeros(0, 3)
    tensors['na\u00efve "name"\n'] = torch.ones(1, dtype=torch.bfloat16)
    return tensors


def write(folder):
    folder.mkdir(exist_ok=True)
    save_file(all_types(), folder / 'all_types.safetensors', metadata={'format': 'pt'})
    accelerator = Accelerator(cpu=True)
    accelerator.save_model(filled(), folder / 'sharded', max_shard_size='0.1KB')
    accelerator.save_model(filled(), folder / 'whole')
    accelerator.save_model(filled(), folder / 'pickled', safe_serialization=False)


def same(here, there, what):
    assert list(here) == list(there), (what, list(here), list(there))
    for name in there:
        assert here[name].dtype == there[name].dtype and here[name].shape == there[name].shape, (what, name)
        assert torch.equal(here[name].reshape(-1).view(torch.uint8), there[name].reshape(-1).view(torch.uint8)), (what, name)


def check(folder):
    types = load_file(folder / 'all_types.safetensors')
    same({name: types[name] for name in all_types()}, all_types(), 'all_types')
    for way in ('sharded', 'whole', 'pickled', 'pickled_shards'):
        net = Net()
        load_checkpoint_in_model(net, folder / way)
        same(net.state_dict(), filled().state_dict(), way)
    same(torch.load(folder / 'pickled' / 'pytorch_model.bin', weights_only=True), filled().state_dict(), 'torch.load')
    half = {name: tensor.bfloat16() if tensor.is_floating_point() else tensor for name, tensor in filled().state_dict().items()}
    same(torch.load(folder / 'half_pickled' / 'pytorch_model.bin', weights_only=True), half, 'another type, torch.save')
    assert len({tensor.data_ptr() for tensor in torch.load(folder / 'half_pickled' / 'pytorch_model.bin').values()}) == len(half) - 1, 'tied'
    file = load_file(folder / 'half' / 'model.safetensors')
    same({name: file[name] for name in half if name in file}, {name: half[name] for name in half if name in file}, 'another type')
    offloaded = OffloadedWeightsLoader(save_folder=str(folder / 'offloaded'))
    weights = {name: tensor for name, tensor in half.items() if name in dict(Net().named_parameters())}
    same({name: offloaded[name] for name in weights}, weights, 'the offload folder')


if len(sys.argv) == 3 and sys.argv[1] in ('write', 'check'):
    {'write': write, 'check': check}[sys.argv[1]](pathlib.Path(sys.argv[2]))
else:
    sys.exit('usage: python-weights.py write|check FOLDER')
