#!/usr/bin/env python3
"""Compares the memory of fine-tuning SmolLM2 on two ranks with PyTorch's FSDP2, which Accelerate uses (Accelerate itself refuses FSDP on CPUs):

    zero-memory.py LANGUAGE_MODEL GGUF [--steps N] [--context N]

LANGUAGE_MODEL is the example program, started by mpirun with --zero 3. What is compared is the peak of both ranks' memory together, in which pages
that they share count once (PSS). Both have a batch of one window a rank, float32 and AdamW. Needs: pip install torch transformers gguf"""
import argparse
import os
import pathlib
import subprocess
import sys
import tempfile
import time

os.environ |= {'TRANSFORMERS_VERBOSITY': 'error', 'OMP_NUM_THREADS': '1'}


def train(options):
    """A rank of the peer."""
    import torch
    import transformers
    from torch.distributed.fsdp import fully_shard
    torch.distributed.init_process_group('gloo')
    model = transformers.AutoModelForCausalLM.from_pretrained(options.model, dtype=torch.float32)
    mesh = torch.distributed.device_mesh.init_device_mesh('cpu', (2,))
    for layer in model.model.layers:
        fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-5)
    ids = torch.randint(0, 256, (1, options.context))
    for _ in range(options.steps):
        model(input_ids=ids, labels=ids).loss.backward()
        optimizer.step()
        optimizer.zero_grad()


def tree_of(root):
    """The process and its descendants."""
    children = {}
    for entry in pathlib.Path('/proc').iterdir():
        if entry.name.isdigit():
            try:
                parent = int((entry / 'stat').read_text().rsplit(')', 1)[1].split()[1])
                children.setdefault(parent, []).append(int(entry.name))
            except (OSError, IndexError):
                pass
    found, waiting = [], [root]
    while waiting:
        found.append(waiting.pop())
        waiting += children.get(found[-1], [])
    return found


def memory_of(process):
    try:
        lines = pathlib.Path(f'/proc/{process}/smaps_rollup').read_text().splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith('Pss:'))
    except (OSError, StopIteration):
        return 0


def peak_of(command, folder):
    """The largest sum of the ranks' memory while the command runs."""
    with open(folder / 'output', 'w') as output:
        process = subprocess.Popen(list(map(str, command)), cwd=folder, stdout=output, stderr=output)
        peak = 0
        while process.poll() is None:
            ranks = sorted((memory_of(one) for one in tree_of(process.pid)), reverse=True)[:2]
            peak = max(peak, sum(ranks))
            time.sleep(0.05)
    if process.returncode != 0:
        sys.exit((folder / 'output').read_text())
    return peak


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('language_model')
    parser.add_argument('model', type=pathlib.Path)
    parser.add_argument('--steps', type=int, default=3)
    parser.add_argument('--context', type=int, default=256)
    options = parser.parse_args()
    if options.language_model == 'rank':
        return train(options)
    import transformers
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        loaded = transformers.AutoModelForCausalLM.from_pretrained(options.model.parent, gguf_file=options.model.name, dtype='float32')
        loaded.hf_quantizer = None  # the weights are dequantised; transformers refuses to save them all the same
        vars(loaded.config).pop('quantization_config', None)
        loaded.save_pretrained(folder / 'model')
        del loaded
        (folder / 'text').write_text('galleys keep time, and rowers hear the hortator. ' * 400)
        ours = peak_of(['mpirun', '--oversubscribe', '--allow-run-as-root', '-n', '2', pathlib.Path(options.language_model).resolve(), '--model', 'model', '--text', 'text',
                        '--bytes', '--steps', options.steps, '--batch-size', 2, '--context-length', options.context, '--zero', 3, '--checkpoint-every',
                        1000000, '--stop-after', options.steps - 1, '--run-dir', 'run', '--cpu'], folder)
        theirs = peak_of([sys.executable, '-m', 'torch.distributed.run', '--standalone', '--nproc-per-node', '2', pathlib.Path(__file__).resolve(), 'rank',
                          folder / 'model', '--steps', options.steps, '--context', options.context], folder)
    print(f'two ranks together: language_model --zero 3 {ours / 2**20:.0f} MiB, FSDP2 {theirs / 2**20:.0f} MiB, ratio {ours / theirs:.2f}')
    sys.exit(0 if ours < theirs else 1)


main()
