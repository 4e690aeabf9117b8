#!/usr/bin/env python3
"""Cases of beam search, computed by Hugging Face transformers with the causal models that oracle.py has written:

    beam_oracle.py FOLDER COUNT   writes FOLDER/*/beams.json with COUNT cases each: prompts, options and texts

Needs: pip install torch transformers"""
import copy
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
from safetensors import safe_open

transformers.utils.logging.disable_progress_bar()


def options_of(r):
    beams = r.choice([2, 3, 4])
    return {'num_beams': beams, 'num_return_sequences': r.choice([1, beams]), 'length_penalty': r.choice([1.0, 0.0, 2.0, -0.5, 0.7]),
            'early_stopping': r.choice([False, True, 'never']), 'max_new_tokens': r.choice([1, 8, 20]), 'min_new_tokens': r.choice([0, 0, 3]),
            'repetition_penalty': r.choice([1.0, 1.0, 1.3]), 'eos_token_id': r.sample(range(3, 61), r.choice([1, 3, 6]))}


def searched(model, prompts, options):
    """The texts of these prompts. The model is a fresh copy: dynamic RoPE keeps the frequencies of the longest text that it has seen until a text
    comes that is shorter than max_position_embeddings, so that what transformers generates would depend on earlier calls."""
    tokens = torch.tensor(prompts)
    with torch.no_grad():
        found = copy.deepcopy(model).generate(tokens, attention_mask=torch.ones_like(tokens), do_sample=False, pad_token_id=0, **options)
    return texts_of(found[:, tokens.shape[1]:], options)


def case(model, r):
    """Prompts of one length: transformers lets padding count for the repetition penalty."""
    time = r.choice([1, 4, 9])
    prompts = [[r.randrange(3, 61) for _ in range(time)] for _ in range(r.choice([1, 2, 3]))]
    options = options_of(r)
    return {'prompts': prompts, 'options': options, 'texts': searched(model, prompts, options)}


def texts_of(rows, options):
    texts = []
    for row in rows.tolist():
        end = next((i + 1 for i, token in enumerate(row) if token in options['eos_token_id']), len(row))
        texts.append(row[:end])
    return texts


def require_same_alone(model, one, folder):
    """Each prompt alone has the same texts."""
    alone = [text for prompt in one['prompts'] for text in searched(model, [prompt], one['options'])]
    if alone != one['texts']:
        sys.exit(f'{folder}: transformers gives other texts in a batch: {one}, alone {alone}')


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    for folder in sorted(pathlib.Path(sys.argv[1]).iterdir()):
        stored = folder / 'case.safetensors'
        if not stored.exists() or 'generate.tokens' not in safe_open(stored, 'pt').keys():
            continue
        model = transformers.AutoModelForCausalLM.from_pretrained(folder).eval()
        if model.config.model_type == 'mixtral':
            model.set_experts_implementation('eager')
            model.config.output_router_logits = False
        r = random.Random(f'beams {folder.name}')
        cases = [case(model, r) for _ in range(int(sys.argv[2]))]
        for one in cases:
            require_same_alone(model, one, folder.name)
        lines = [json.dumps(one, separators=(',', ':')) for one in cases]
        (folder / 'beams.json').write_text('[' + ',\n'.join(lines) + ']\n')


main()
