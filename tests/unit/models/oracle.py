#!/usr/bin/env python3
"""Cases for the tests of models, computed by Hugging Face transformers and torchvision:

    oracle.py FOLDER FIRST COUNT [FAMILY...]   writes FOLDER/FAMILY-SEED for the seeds FIRST, FIRST + 1, ...

Each case is a folder with config.json and model.safetensors of a small random model, and case.safetensors: the inputs, the outputs,
the gradients of sum(outputs x cotangents) by all parameters, and for causal models 64 tokens of greedy decoding.
Needs: pip install torch transformers (and torchvision for resnet18 and resnet50)."""
import json
import os
import pathlib
import random
import sys
import warnings

os.environ['TRANSFORMERS_VERBOSITY'] = 'error'
warnings.filterwarnings('ignore')
import torch
import transformers
from safetensors.torch import save_file

transformers.utils.logging.disable_progress_bar()
VOCABULARY = 61


def text_sizes(r, heads_at_most=4):
    heads = r.choice([h for h in (1, 2, 3, 4) if h <= heads_at_most])
    return heads, heads * r.choice([4, 6, 8])


def rope(r, positions):
    kind = r.choice(['default', 'linear', 'dynamic', 'yarn', 'llama3'])
    parameters = {'rope_type': kind, 'rope_theta': r.choice([100.0, 10000.0, 500000.0])}
    if kind != 'default':
        parameters['factor'] = r.choice([1.5, 2.0, 8.0])
    if kind == 'yarn':
        parameters['original_max_position_embeddings'] = positions // 2
        if r.random() < 0.3:
            parameters |= {'mscale': 0.7, 'mscale_all_dim': 1.1}
        if r.random() < 0.3:
            parameters['attention_factor'] = 1.2
        if r.random() < 0.3:
            parameters |= {'beta_fast': 16.0, 'beta_slow': 2.0}
        if r.random() < 0.3:
            parameters['truncate'] = False
    if kind == 'llama3':
        parameters |= {'low_freq_factor': 1.0, 'high_freq_factor': 4.0, 'original_max_position_embeddings': positions // 2}
    return parameters


def llama_family(r, family):
    heads, _ = text_sizes(r)
    key_heads = r.choice([k for k in (1, 2, 3, 4) if heads % k == 0])
    width = r.choice([4, 6, 8])
    positions = r.choice([8, 16, 64])
    common = dict(vocab_size=VOCABULARY, hidden_size=heads * width, intermediate_size=r.choice([12, 24]),
                  num_hidden_layers=r.choice([1, 2, 3]), num_attention_heads=heads, num_key_value_heads=key_heads,
                  max_position_embeddings=positions, rms_norm_eps=r.choice([1e-5, 1e-6]), rope_parameters=rope(r, positions),
                  tie_word_embeddings=r.random() < 0.5, hidden_act=r.choice(['silu', 'silu', 'gelu']), pad_token_id=0,
                  bos_token_id=1, eos_token_id=2)
    if family == 'llama':
        return transformers.LlamaConfig(**common, attention_bias=r.random() < 0.3, mlp_bias=r.random() < 0.3,
                                        head_dim=r.choice([None, width, 2 * width]))
    if family == 'mistral':
        return transformers.MistralConfig(**common, sliding_window=r.choice([None, 2, 3, 5, 100]), head_dim=r.choice([None, 2 * width]))
    if family == 'mixtral':
        experts = r.choice([1, 2, 4, 5])
        # transformers 5.24 scales no frequencies of a Mixtral without head_dim
        default_width = None if common['rope_parameters']['rope_type'] == 'default' else width
        return transformers.MixtralConfig(**common, sliding_window=r.choice([None, None, 2, 5]), head_dim=r.choice([default_width, 2 * width]),
                                          num_local_experts=experts, num_experts_per_tok=r.choice([k for k in (1, 2, 3) if k <= experts]),
                                          output_router_logits=r.random() < 0.7)
    window = dict(use_sliding_window=r.random() < 0.5, sliding_window=r.choice([2, 4]), max_window_layers=r.choice([0, 1, 2]))
    if family == 'qwen2':
        return transformers.Qwen2Config(**common, **window)
    return transformers.Qwen3Config(**common, **window, head_dim=r.choice([4, 8]), attention_bias=r.random() < 0.3)


def gpt2(r):
    heads, width = text_sizes(r)
    return transformers.GPT2Config(vocab_size=VOCABULARY, n_embd=width, n_head=heads, n_layer=r.choice([1, 2, 3]), n_positions=96,
                                   n_inner=r.choice([None, 20]), activation_function=r.choice(['gelu_new', 'gelu', 'relu']),
                                   scale_attn_by_inverse_layer_idx=r.random() < 0.3, scale_attn_weights=r.random() < 0.8,
                                   tie_word_embeddings=r.random() < 0.7, pad_token_id=0, bos_token_id=1, eos_token_id=2)


def bert(r):
    heads, width = text_sizes(r)
    return transformers.BertConfig(vocab_size=VOCABULARY, hidden_size=width, num_attention_heads=heads, num_hidden_layers=r.choice([1, 2, 3]),
                                   intermediate_size=r.choice([12, 24]), max_position_embeddings=32, type_vocab_size=r.choice([1, 2, 3]),
                                   hidden_act=r.choice(['gelu', 'gelu_new', 'relu']), layer_norm_eps=r.choice([1e-12, 1e-5]),
                                   num_labels=r.choice([1, 2, 5]), tie_word_embeddings=r.random() < 0.8)


def distilbert(r):
    heads, width = text_sizes(r)
    return transformers.DistilBertConfig(vocab_size=VOCABULARY, dim=width, n_heads=heads, n_layers=r.choice([1, 2, 3]),
                                         hidden_dim=r.choice([12, 24]), max_position_embeddings=32, activation=r.choice(['gelu', 'relu']),
                                         num_labels=r.choice([1, 2, 5]), tie_word_embeddings=r.random() < 0.8,
                                         sinusoidal_pos_embds=r.random() < 0.3)


def resnet(r):
    stages = r.choice([1, 2, 3])
    return transformers.ResNetConfig(num_channels=r.choice([1, 3]), embedding_size=r.choice([4, 8]),
                                     hidden_sizes=[r.choice([8, 12, 16]) for _ in range(stages)],
                                     depths=[r.choice([1, 2]) for _ in range(stages)], layer_type=r.choice(['basic', 'bottleneck']),
                                     hidden_act=r.choice(['relu', 'gelu']), downsample_in_first_stage=r.random() < 0.5,
                                     downsample_in_bottleneck=r.random() < 0.5, num_labels=r.choice([2, 7]))


def vit(r):
    heads, width = text_sizes(r)
    patch = r.choice([4, 8])
    return transformers.ViTConfig(hidden_size=width, num_attention_heads=heads, num_hidden_layers=r.choice([1, 2, 3]),
                                  intermediate_size=r.choice([12, 24]), image_size=patch * r.choice([2, 3]), patch_size=patch,
                                  num_channels=r.choice([1, 3]), qkv_bias=r.random() < 0.7, hidden_act=r.choice(['gelu', 'relu']),
                                  layer_norm_eps=r.choice([1e-12, 1e-5]), num_labels=r.choice([2, 7]))


def causal_classes(name, lm):
    return [name + lm] * 3 + [name + 'Model', name + 'ForSequenceClassification', name + 'ForTokenClassification']


FAMILIES = {
    'llama': (lambda r: llama_family(r, 'llama'), causal_classes('Llama', 'ForCausalLM')),
    'mistral': (lambda r: llama_family(r, 'mistral'), causal_classes('Mistral', 'ForCausalLM')),
    'mixtral': (lambda r: llama_family(r, 'mixtral'), causal_classes('Mixtral', 'ForCausalLM')),
    'qwen2': (lambda r: llama_family(r, 'qwen2'), causal_classes('Qwen2', 'ForCausalLM')),
    'qwen3': (lambda r: llama_family(r, 'qwen3'), causal_classes('Qwen3', 'ForCausalLM')),
    'gpt2': (gpt2, causal_classes('GPT2', 'LMHeadModel')),
    'bert': (bert, ['BertModel', 'BertForMaskedLM', 'BertForSequenceClassification', 'BertForTokenClassification']),
    'distilbert': (distilbert, ['DistilBertModel', 'DistilBertForMaskedLM', 'DistilBertForSequenceClassification',
                                'DistilBertForTokenClassification']),
    'resnet': (resnet, ['ResNetModel', 'ResNetForImageClassification', 'ResNetForImageClassification']),
    'vit': (vit, ['ViTModel', 'ViTForImageClassification']),
    'resnet18': (None, None),
    'resnet34': (None, None),
    'resnet50': (None, None),
    'resnet101': (None, None),
}


def randomise(model):
    """Weights at which all parts matter: outputs are of the order of 1."""
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.dim() > 1:
                fan_in = parameter.shape[-1] if 'experts' in name else parameter[0].numel() if 'mbed' not in name else 1
                parameter.normal_(0, 1 / fan_in**0.5)
            elif 'orm' in name and name.endswith('weight') or 'ln_' in name and name.endswith('weight') or 'bn' in name and name.endswith('weight'):
                parameter.normal_(1, 0.1)
            else:
                parameter.normal_(0, 0.1)
        for name, buffer in model.named_buffers():
            if name.endswith('running_mean'):
                buffer.normal_(0, 0.1)
            if name.endswith('running_var'):
                buffer.uniform_(0.5, 1.5)


def text_inputs(r, family, seed):
    rows, time = r.choice([1, 2, 3]), r.choice([1, 5, 12, 21])
    generator = torch.Generator().manual_seed(seed)
    ids = torch.randint(3, VOCABULARY, (rows, time), generator=generator)
    inputs = {'input_ids': ids}
    padding = r.choice(['none', 'left', 'right'])
    if padding != 'none' and time > 1:
        mask = torch.ones_like(ids)
        for row in range(rows):
            cut = r.randrange(0, time)
            where = slice(0, cut) if padding == 'left' else slice(time - cut, time)
            mask[row, where] = 0
            ids[row, where] = 0
        inputs['attention_mask'] = mask
    return inputs


def image_inputs(config, r, seed):
    size = config.image_size if hasattr(config, 'image_size') else r.choice([24, 33])
    generator = torch.Generator().manual_seed(seed)
    return {'pixel_values': torch.randn(r.choice([1, 2]), config.num_channels, size, size, generator=generator)}


def outputs_of(model, inputs):
    result = model(**inputs)
    names = ('logits', 'last_hidden_state', 'pooler_output', 'aux_loss')
    found = {name: result[name] for name in names if name in result and result[name] is not None}
    if 'pixel_values' in inputs and 'pooler_output' in found:
        found['pooler_output'] = found['pooler_output'].flatten(1)
    return found


def write_case(folder, model, inputs, outputs):
    # what a padded position computes is of no use to anyone
    tensors = {f'input.{name}': value.contiguous() for name, value in inputs.items()}
    loss = 0
    for name, value in outputs.items():
        cotangent = torch.randn(value.shape)
        if 'attention_mask' in inputs and value.dim() == 3:
            cotangent = cotangent * inputs['attention_mask'].unsqueeze(-1)
        loss = loss + (value * cotangent).sum()
        tensors[f'output.{name}'] = value.detach().clone().contiguous()
        tensors[f'cotangent.{name}'] = cotangent.contiguous()
    loss.backward()
    for name, parameter in model.named_parameters():
        if parameter.grad is not None:
            tensors[f'gradient.{name}'] = parameter.grad.clone().contiguous()
    return tensors


def in_names_of_files(tensors):
    """transformers 5 has other names for ViT in memory than in files."""
    renamed = {}
    for name, value in tensors.items():
        if name.startswith('gradient.'):
            for new, old in (('.layers.', '.encoder.layer.'), ('.attention.q_proj.', '.attention.attention.query.'),
                             ('.attention.k_proj.', '.attention.attention.key.'), ('.attention.v_proj.', '.attention.attention.value.'),
                             ('.attention.o_proj.', '.attention.output.dense.'), ('.mlp.fc1.', '.intermediate.dense.'),
                             ('.mlp.fc2.', '.output.dense.')):
                name = name.replace(new, old)
        renamed[name] = value
    return renamed


def greedy(model, inputs, count):
    """Without the library's own loop of ends and stops: the next token of each row is the likeliest."""
    model.config.output_router_logits = False  # whose mask transformers does not extend
    generated = model.generate(**inputs, max_new_tokens=count, min_new_tokens=count, do_sample=False, eos_token_id=None, pad_token_id=0)
    return generated[:, inputs['input_ids'].shape[1]:]


def torchvision_case(folder, family, seed):
    import torchvision
    torch.manual_seed(seed)
    model = getattr(torchvision.models, family)(num_classes=5)
    randomise(model)
    model.eval()
    (folder / 'config.json').write_text(json.dumps({'architecture': family, 'num_classes': 5}))
    save_file(model.state_dict(), folder / 'model.safetensors', metadata={'format': 'pt'})
    pixels = torch.randn(1, 3, 48, 40)
    outputs = {'logits': model(pixels)}
    tensors = write_case(folder, model, {'pixel_values': pixels}, outputs)
    kept = {name: value for name, value in tensors.items() if not name.startswith('gradient.layer')}
    save_file(kept, folder / 'case.safetensors')


def library_case(folder, family, seed):
    make_config, classes = FAMILIES[family]
    r = random.Random(f'{family} {seed}')
    torch.manual_seed(seed)
    config = make_config(r)
    name = classes[seed % len(classes)]
    model = getattr(transformers, name)(config)
    if family == 'mixtral':
        model.set_experts_implementation('eager')  # the default one needs aligned widths
    randomise(model)
    model.eval()
    model.save_pretrained(folder)
    inputs = image_inputs(config, r, seed) if family in ('resnet', 'vit') else text_inputs(r, family, seed)
    if family == 'bert' and config.type_vocab_size > 1:
        inputs['token_type_ids'] = torch.randint(0, config.type_vocab_size, inputs['input_ids'].shape)
    tensors = write_case(folder, model, inputs, outputs_of(model, inputs))
    if family == 'vit':
        tensors = in_names_of_files(tensors)
    if name.endswith(('ForCausalLM', 'LMHeadModel')):
        left = {'input_ids': inputs['input_ids']}
        if 'attention_mask' in inputs:  # generation needs the padding on the left
            order = inputs['attention_mask'].argsort(dim=1, stable=True)
            left = {key: value.gather(1, order) for key, value in inputs.items()}
        with torch.no_grad():
            tensors['generate.tokens'] = greedy(model, left, 64).contiguous()
        for key, value in left.items():
            tensors[f'generate.{key}'] = value.contiguous()
    save_file({key: value.clone() for key, value in tensors.items()}, folder / 'case.safetensors')


def main():
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    target, first, count = pathlib.Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    for family in sys.argv[4:] or FAMILIES:
        for seed in range(first, first + count):
            folder = target / f'{family}-{seed}'
            folder.mkdir(parents=True, exist_ok=True)
            (library_case if FAMILIES[family][0] else torchvision_case)(folder, family, seed)


if __name__ == '__main__':
    main()
