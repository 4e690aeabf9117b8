#!/usr/bin/env python3
"""Models with weights that bitsandbytes has packed, in the layout in which transformers saves them:

    packed_models.py write FOLDER SEED   writes FOLDER/nf4, double and int8, each with packed/ and what it is unpacked to in plain/
    packed_models.py check FOLDER        compares FOLDER/*/ours, which Hortator has saved again, by bitsandbytes

Needs: pip install torch bitsandbytes safetensors."""
import json
import pathlib
import sys

import bitsandbytes.functional as bnb
import torch
from safetensors.torch import load_file, save_file

CONFIG = {'architectures': ['LlamaForCausalLM'], 'model_type': 'llama', 'vocab_size': 96, 'hidden_size': 64, 'intermediate_size': 192,
          'num_hidden_layers': 2, 'num_attention_heads': 4, 'num_key_value_heads': 2, 'max_position_embeddings': 64,
          'rms_norm_eps': 1e-5, 'tie_word_embeddings': False}


def unpacked(tensors, name):
    weight = tensors[name]
    layer = name.removesuffix('.weight')
    if layer + '.SCB' in tensors:
        return torch.ops.bitsandbytes.int8_vectorwise_dequant.default(weight, tensors[layer + '.SCB'])
    parts = {key.removeprefix(name + '.'): value for key, value in tensors.items() if key.startswith(name + '.')}
    return bnb.dequantize_4bit(weight, bnb.QuantState.from_dict(parts, device=torch.device('cpu')))


def is_packed(tensors, name):
    return name.endswith('.weight') and (name.removesuffix('.weight') + '.SCB' in tensors or any(key.startswith(name + '.') for key in tensors))


def plain(tensors):
    return {name: unpacked(tensors, name).float().contiguous() if is_packed(tensors, name) else value
            for name, value in tensors.items()
            if name.endswith('.weight') and ('.weight.' not in name)}


def packed(weights, kind):
    tensors = {}
    for name, value in weights.items():
        layer = name.removesuffix('.weight')
        if '_proj' not in name:
            tensors[name] = value
        elif kind == 'int8':
            numbers, scales, _ = torch.ops.bitsandbytes.int8_vectorwise_quant.default(value.clone())
            tensors |= {name: numbers, layer + '.SCB': scales, layer + '.weight_format': torch.tensor(0, dtype=torch.uint8)}
        else:
            numbers, state = bnb.quantize_4bit(value, blocksize=64, quant_type='nf4', compress_statistics=kind == 'double')
            tensors[name] = numbers
            tensors |= {f'{name}.{key}': part for key, part in state.as_dict(packed=True).items()}
    return tensors


def write(folder, seed):
    torch.manual_seed(seed)
    width, inner = CONFIG['hidden_size'], CONFIG['intermediate_size']
    weights = {'model.embed_tokens.weight': torch.randn(96, width), 'model.norm.weight': torch.ones(width), 'lm_head.weight': torch.randn(96, width)}
    for i in range(CONFIG['num_hidden_layers']):
        layer = f'model.layers.{i}.'
        weights |= {layer + 'input_layernorm.weight': torch.ones(width), layer + 'post_attention_layernorm.weight': torch.ones(width)}
        for name, rows, columns in [('self_attn.q', width, width), ('self_attn.k', width // 2, width), ('self_attn.v', width // 2, width),
                                    ('self_attn.o', width, width), ('mlp.gate', inner, width), ('mlp.up', inner, width), ('mlp.down', width, inner)]:
            weights[f'{layer}{name}_proj.weight'] = torch.randn(rows, columns) / 8
    for kind in ('nf4', 'double', 'int8'):
        tensors = packed(weights, kind)
        packing = {'quant_method': 'bitsandbytes', 'load_in_8bit': kind == 'int8', 'load_in_4bit': kind != 'int8'}
        for name, content, config in (('packed', tensors, CONFIG | {'quantization_config': packing}), ('plain', plain(tensors), CONFIG)):
            target = folder / kind / name
            target.mkdir(parents=True, exist_ok=True)
            (target / 'config.json').write_text(json.dumps(config))
            save_file({key: value.contiguous() for key, value in content.items()}, target / 'model.safetensors', {'format': 'pt'})


def check(folder):
    for kind in ('nf4', 'double', 'int8'):
        ours, expected = load_file(folder / kind / 'ours' / 'model.safetensors'), load_file(folder / kind / 'plain' / 'model.safetensors')
        config = json.loads((folder / kind / 'ours' / 'config.json').read_text())['quantization_config']
        assert config['quant_method'] == 'bitsandbytes' and config['load_in_8bit'] == (kind == 'int8'), config
        found = plain(ours)
        assert found.keys() == expected.keys(), found.keys() ^ expected.keys()
        for name, value in expected.items():
            assert torch.allclose(found[name], value, rtol=1e-6, atol=1e-7), (kind, name)
            assert is_packed(ours, name) == ('_proj' in name), (kind, name)


if sys.argv[1] == 'write':
    write(pathlib.Path(sys.argv[2]), int(sys.argv[3]))
else:
    check(pathlib.Path(sys.argv[2]))
