#!/usr/bin/env python3
"""Adapters for the tests of hortator::lora, made and read by Hugging Face's peft:

    lora_oracle.py write FOLDER FIRST COUNT   writes FOLDER/SEED for the seeds FIRST, FIRST + 1, ...
    lora_oracle.py check FOLDER               reads the adapters that the test has written to FOLDER/SEED/again and FOLDER/SEED/new

Each case is a folder with a small random model (config.json, model.safetensors), an adapter with random values (adapter/), and
case.safetensors: inputs, outputs, the gradients of sum(outputs x cotangents) by the adapter's parameters, under their names in the file,
and by how much float32 differs from float64 at most (error.output, error.gradient).
Needs: pip install torch transformers peft."""
import copy
import json
import os
import pathlib
import random
import sys
import warnings

os.environ['TRANSFORMERS_VERBOSITY'] = 'error'
os.environ['HF_HUB_OFFLINE'] = '1'
warnings.filterwarnings('ignore')
sys.path.insert(0, str(pathlib.Path(__file__).parent))
import peft
import torch
import transformers
from peft.utils import get_peft_model_state_dict
from safetensors.torch import load_file, save_file

import oracle

LLAMA_LAYERS = ['q_proj', 'k_proj', 'v_proj', 'o_proj', 'gate_proj', 'up_proj', 'down_proj']
LAYERS = {
    'llama': LLAMA_LAYERS, 'mistral': LLAMA_LAYERS, 'qwen2': LLAMA_LAYERS, 'qwen3': LLAMA_LAYERS,
    'mixtral': LLAMA_LAYERS[:4],
    'gpt2': ['attn.c_attn', 'attn.c_proj', 'c_fc', 'mlp.c_proj'],
    'bert': ['query', 'key', 'value', 'attention.output.dense', 'intermediate.dense'],
    'distilbert': ['q_lin', 'k_lin', 'v_lin', 'out_lin', 'lin1', 'lin2'],
}
EMBEDDINGS = {'gpt2': 'wte', 'bert': 'word_embeddings', 'distilbert': 'word_embeddings'}
HEADS = {'gpt2': 'score', 'bert': 'classifier', 'distilbert': 'classifier'}


def targets_of(r, family, name):
    layers = LAYERS[family]
    kind = r.choice(['some', 'some', 'one', 'all-linear', 'pattern', 'default', 'embedding', 'head'])
    if family == 'mixtral' and kind in ('all-linear', 'pattern', 'default'):  # peft then adapts the experts as well
        kind = 'some'
    if kind == 'one':
        return [r.choice(layers)]
    if kind == 'all-linear':
        return 'all-linear'
    if kind == 'pattern':
        ends = r.sample([layer.split('.')[-1] for layer in layers], 2)
        return rf'.*\.({"|".join(sorted(set(ends)))})'
    if kind == 'default' and not name.endswith(('Model', 'ForTokenClassification')):
        return None
    if kind == 'embedding':
        return [EMBEDDINGS.get(family, 'embed_tokens')] + r.sample(layers, 1)
    if kind == 'head' and name.endswith(('ForCausalLM', 'LMHeadModel')):
        return ['lm_head'] + r.sample(layers, 1)
    return r.sample(layers, r.randrange(1, len(layers)))


def config_of(r, family, name):
    targets = targets_of(r, family, name)
    options = dict(r=r.choice([1, 2, 3, 4, 8]), lora_alpha=r.choice([1, 4, 8, 16, 5]), target_modules=targets, use_rslora=r.random() < 0.3,
                   lora_dropout=r.choice([0.0, 0.1]), init_lora_weights=r.choice([True, 'gaussian', False]))
    is_list = isinstance(targets, list)
    has_embedding = is_list and any('embed' in one or one == 'wte' for one in targets)
    if not has_embedding:
        options['use_dora'] = r.random() < 0.25
        options['lora_bias'] = not options['use_dora'] and family not in ('llama', 'mistral', 'mixtral', 'qwen3') and r.random() < 0.2
    if is_list and r.random() < 0.3:
        options['rank_pattern'] = {targets[-1]: r.choice([1, 5])}
        options['alpha_pattern'] = {targets[0]: r.choice([2, 32])}
    if targets != 'all-linear' and r.random() < 0.2:
        options['bias'] = r.choice(['all', 'lora_only'])
    if is_list and family not in ('gpt2',) and r.random() < 0.2:
        options['layers_to_transform'] = [0]
    if r.random() < 0.15:
        options['exclude_modules'] = r.choice([[LAYERS[family][0]], r'.*\.0\..*_proj'])
    if name.endswith('ForSequenceClassification') and r.random() < 0.7:
        options['modules_to_save'] = [HEADS.get(family, 'score')]
    return peft.LoraConfig(**options)


def randomise_adapter(model):
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if 'lora_magnitude' in name:
                parameter.mul_(torch.empty_like(parameter).uniform_(0.5, 1.5))
            elif 'lora_' in name:
                parameter.normal_(0, 0.5 / parameter.shape[-1]**0.5)
            elif parameter.requires_grad:
                parameter.add_(torch.randn_like(parameter) * 0.1)


def base_of(folder, family, seed):
    make_config, classes = oracle.FAMILIES[family]
    r = random.Random(f'lora {family} {seed}')
    torch.manual_seed(seed)
    name = classes[seed % len(classes)]
    model = getattr(transformers, name)(make_config(r))
    if family == 'mixtral':
        model.set_experts_implementation('eager')
    oracle.randomise(model)
    model.eval()
    model.save_pretrained(folder)
    return model, name, r


def rounding_errors(adapted, inputs, outputs, tensors, gradients):
    """By how much float32 differs from float64: some random models magnify rounding."""
    exact = copy.deepcopy(adapted).double()
    exact.zero_grad()
    exact_outputs = oracle.outputs_of(exact, inputs)
    sum((value * tensors[f'cotangent.{key}']).sum() for key, value in exact_outputs.items()).backward()
    of_parameter = {key: parameter.grad for key, parameter in exact.named_parameters()}
    largest = [max((one.detach() - other.detach()).abs().max() for one, other in pairs)
               for pairs in ([(outputs[key], exact_outputs[key]) for key in outputs], [(gradients[key], of_parameter[key]) for key in gradients])]
    return {'error.output': largest[0].float().reshape(1), 'error.gradient': largest[1].float().reshape(1)}


def write_case(folder, family, seed):
    model, name, r = base_of(folder, family, seed)
    inputs = oracle.text_inputs(r, family, seed)
    for _ in range(50):
        try:
            config = config_of(r, family, name)
            adapted = peft.get_peft_model(model, config)
            break
        except ValueError:  # peft refuses the combination, or nothing is left after what is excluded
            continue
    randomise_adapter(adapted)
    adapted.eval()
    outputs = oracle.outputs_of(adapted, inputs)
    tensors = oracle.write_case(folder, adapted, inputs, outputs)
    kept = {key: value for key, value in tensors.items() if not key.startswith('gradient.')}
    gradients = {key: parameter.grad for key, parameter in adapted.named_parameters() if parameter.grad is not None}
    state = get_peft_model_state_dict(adapted, state_dict={key: value for key, value in adapted.state_dict().items()}, save_embedding_layers=False)
    by_pointer = {value.data_ptr(): key for key, value in state.items()}
    names = {parameter.data_ptr(): key for key, parameter in adapted.named_parameters()}
    for pointer, key in by_pointer.items():
        if pointer in names and names[pointer] in gradients:
            kept[f'gradient.{key}'] = gradients[names[pointer]].clone().contiguous()
    adapted.save_pretrained(folder / 'adapter')
    kept |= rounding_errors(adapted, inputs, outputs, tensors, gradients)
    with torch.no_grad(), adapted.disable_adapter():
        if not config.modules_to_save and config.bias == 'none':
            for key, value in oracle.outputs_of(adapted, inputs).items():
                kept[f'base.{key}'] = value.clone().contiguous()
    save_file(kept, folder / 'case.safetensors')


def outputs_in_float64(model, inputs):
    with torch.no_grad():
        return oracle.outputs_of(copy.deepcopy(model).double(), inputs)


def check_outputs(model, case, name, prefix, tolerance=1e-5):
    inputs = {key.removeprefix('input.'): value for key, value in case.items() if key.startswith('input.')}
    with torch.no_grad():
        outputs = oracle.outputs_of(model, inputs)
    for key, value in outputs.items():
        expected = case[f'{prefix}.{key}']
        if 'attention_mask' in inputs and value.dim() == 3:
            value, expected = value * inputs['attention_mask'].unsqueeze(-1), expected * inputs['attention_mask'].unsqueeze(-1)
        difference = (value - expected).abs().max().item()
        exact = outputs_in_float64(model, inputs)[key]
        rounding = (value - (exact * inputs['attention_mask'].unsqueeze(-1) if 'attention_mask' in inputs and value.dim() == 3 else exact)).abs().max().item()
        bound = max(tolerance * max(1.0, expected.abs().max().item()), 4 * rounding)
        if not difference <= bound:
            sys.exit(f'{name}: {key} of the adapter that Hortator has written differs by {difference}')


def check_case(folder):
    architecture = json.loads((folder / 'config.json').read_text())['architectures'][0]
    checked = 0
    for written in ('again', 'new'):
        if not (folder / written).exists():
            continue
        base = getattr(transformers, architecture).from_pretrained(folder)
        if 'Mixtral' in architecture:
            base.set_experts_implementation('eager')
        model = peft.PeftModel.from_pretrained(base, folder / written)
        model.eval()
        case = load_file(folder / 'case.safetensors')
        if written == 'new':
            case |= load_file(folder / written / 'outputs.safetensors')
        check_outputs(model, case, folder / written, 'output' if written == 'again' else 'new')
        checked += 1
    return checked


def main():
    folder = pathlib.Path(sys.argv[2])
    if sys.argv[1] == 'check':
        print(sum(check_case(one) for one in sorted(folder.iterdir()) if one.is_dir()), 'adapters of Hortator read by peft')
        return
    families = sys.argv[5:] or list(LAYERS)
    for seed in range(int(sys.argv[3]), int(sys.argv[3]) + int(sys.argv[4])):
        family = families[seed % len(families)]
        case = folder / f'{family}-{seed}'
        case.mkdir(parents=True)
        write_case(case, family, seed)


if __name__ == '__main__':
    main()
