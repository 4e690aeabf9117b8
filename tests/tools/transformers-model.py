#!/usr/bin/env python3
"""Round trip of a Hugging Face transformers model through save_model: `write FOLDER` saves it as FOLDER/before; `check FOLDER`
loads FOLDER/after, which the tests have written, and compares. Needs: pip install torch transformers"""
import pathlib
import shutil
import sys

import torch
from transformers import GPT2Config, GPT2LMHeadModel


def model():
    torch.manual_seed(1)
    config = GPT2Config(vocab_size=11, n_positions=7, n_embd=8, n_layer=2, n_head=2, bos_token_id=0, eos_token_id=0)
    return GPT2LMHeadModel(config)


def write(folder):
    model().save_pretrained(folder / 'before')


def check(folder):
    for config in (folder / 'before').glob('*config.json'):
        shutil.copy(config, folder / 'after')
    assert (folder / 'after' / 'model.safetensors.index.json').exists(), 'the model is not sharded'
    loaded, report = GPT2LMHeadModel.from_pretrained(folder / 'after', output_loading_info=True)
    assert not any(report.values()), report
    assert loaded.lm_head.weight is loaded.transformer.wte.weight, 'the output layer is no longer tied to the embedding'
    expected = model().state_dict()
    found = loaded.state_dict()
    assert list(found) == list(expected)
    for name in expected:
        assert torch.equal(found[name], expected[name]), name
    print(f'{len(expected)} tensors are equal')


if len(sys.argv) == 3 and sys.argv[1] in ('write', 'check'):
    {'write': write, 'check': check}[sys.argv[1]](pathlib.Path(sys.argv[2]))
else:
    sys.exit('usage: transformers-model.py write|check FOLDER')
