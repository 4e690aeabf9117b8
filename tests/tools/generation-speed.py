#!/usr/bin/env python3
"""Compares generation with transformers, on one core, in float32, with the likeliest tokens:

    generation-speed.py GENERATE GGUF [--tokens N] [--pairs N] [--cpu-time]

GENERATE is the example program, GGUF a file of the Llama family. Both sides alternate. What is compared is the time from the 8th token to the last;
with --cpu-time the time on the CPU, which other programs disturb less. Then the memory that GENERATE takes for this model, beyond what it takes
for a tiny one, is compared with weights and cache.
Needs: pip install torch transformers gguf"""
import argparse
import copy
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time

os.environ['OMP_NUM_THREADS'] = os.environ['MKL_NUM_THREADS'] = '1'
os.environ['TRANSFORMERS_VERBOSITY'] = 'error'
import torch
import transformers

PROMPT = 'The history of the galley begins in the Mediterranean, where'
FIRST = 8


class Python:
    def __init__(self, file):
        torch.set_num_threads(1)
        self.model = transformers.AutoModelForCausalLM.from_pretrained(file.parent, gguf_file=file.name, dtype=torch.float32).eval()
        self.tokenizer = transformers.AutoTokenizer.from_pretrained(file.parent, gguf_file=file.name)
        self.ids = self.tokenizer(PROMPT, return_tensors='pt')

    def save(self, folder, config):
        """Saves a model of this config, with the weights of this one if they fit."""
        config = copy.deepcopy(config)
        if hasattr(config, 'quantization_config'):
            del config.quantization_config
        model = transformers.AutoModelForCausalLM.from_config(config)
        if config.hidden_size == self.model.config.hidden_size:
            model.load_state_dict(self.model.state_dict())
        model.save_pretrained(folder)
        self.tokenizer.save_pretrained(folder)
        return folder

    def tiny_config(self):
        config = copy.deepcopy(self.model.config)
        config.hidden_size, config.intermediate_size, config.num_hidden_layers = 8, 8, 1
        config.num_attention_heads, config.num_key_value_heads, config.head_dim = 1, 1, 8
        return config

    def seconds(self, tokens, clock):
        begin = clock()
        self.model.generate(**self.ids, max_new_tokens=tokens, min_new_tokens=tokens, do_sample=False, pad_token_id=0)
        return clock() - begin


def peak_memory(process):
    """The most memory that a process took until it ended. ru_maxrss would count the memory of this one, too, from which it was started."""
    peak = 0
    while True:
        try:
            status = pathlib.Path(f'/proc/{process.pid}/status').read_text()
        except FileNotFoundError:
            return peak
        found = re.search(r'VmHWM:\s+(\d+) kB', status)
        if not found:  # ended
            return peak
        peak = int(found[1]) * 1024
        time.sleep(0.02)


class Program:
    def __init__(self, program, model, folder):
        (folder / 'prompts').write_text(PROMPT + '\n')
        self.command = [program, '--model', model, '--prompts', folder / 'prompts', '--answers', folder / 'answers', '--cpu', '--min-new-tokens']
        self.peak = 0

    def seconds(self, tokens, uses_cpu_time):
        begin = time.perf_counter()
        process = subprocess.Popen([*map(str, self.command), str(tokens), '--max-new-tokens', str(tokens)], stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL)
        self.peak = max(self.peak, peak_memory(process))
        _, status, usage = os.wait4(process.pid, 0)
        if status != 0:
            sys.exit(f'generate failed with status {status}')
        return usage.ru_utime + usage.ru_stime if uses_cpu_time else time.perf_counter() - begin


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('generate')
    parser.add_argument('gguf', type=pathlib.Path)
    parser.add_argument('--tokens', type=int, default=128)
    parser.add_argument('--pairs', type=int, default=5)
    parser.add_argument('--cpu-time', action='store_true')
    options = parser.parse_args()
    clock = time.process_time if options.cpu_time else time.perf_counter
    python = Python(options.gguf)
    more = options.tokens - FIRST
    ratios, ours, theirs = [], [], []
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        program = Program(options.generate, options.gguf, folder)
        python.seconds(FIRST, clock)
        for _ in range(options.pairs):
            theirs.append((python.seconds(options.tokens, clock) - python.seconds(FIRST, clock)) / more)
            ours.append((program.seconds(options.tokens, options.cpu_time) - program.seconds(FIRST, options.cpu_time)) / more)
            ratios.append(theirs[-1] / ours[-1])
        peaks = []
        for name, config in (('tiny', python.tiny_config()), ('whole', python.model.config)):
            saved = Program(options.generate, python.save(folder / name, config), folder)
            saved.seconds(options.tokens, False)
            peaks.append(saved.peak)
    print(f'transformers {1 / statistics.median(theirs):.1f} tokens/s, generate {1 / statistics.median(ours):.1f} tokens/s; '
          f'ratio {statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})')
    weights = sum(p.numel() * p.element_size() for p in python.model.parameters())
    config = python.model.config
    length = python.ids['input_ids'].shape[1] + options.tokens
    cache = 2 * config.num_hidden_layers * config.num_key_value_heads * config.hidden_size // config.num_attention_heads * length * 4
    more_memory = peaks[1] - peaks[0]
    print(f'memory {more_memory / 2**20:.0f} MiB beyond a tiny model, weights {weights / 2**20:.0f} MiB, cache {cache / 2**20:.0f} MiB; '
          f'ratio {more_memory / (weights + cache):.3f}')


main()
