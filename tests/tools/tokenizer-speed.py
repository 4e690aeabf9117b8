#!/usr/bin/env python3
"""Measures tokenizers against Python's tokenizers, on one core, in turns:

    tokenizer-speed.py TEST_TOKENIZER TEXT FOLDER...   for each folder with a tokenizer.json: megabytes a second of both, and their ratio

TEST_TOKENIZER is the test program of the build. Both encode the lines of TEXT one by one, in processes of their own; the number of tokens must be
the same. Needs: pip install tokenizers"""
import os
import re
import statistics
import subprocess
import sys

ROUNDS = 5
ENCODE = """
import sys, time
from tokenizers import Tokenizer
tokenizer = Tokenizer.from_file(sys.argv[1] + '/tokenizer.json')
tokenizer.no_padding(), tokenizer.no_truncation()
lines = open(sys.argv[2], encoding='utf-8', newline='\\n').read().removesuffix('\\n').split('\\n')
begin = time.perf_counter()
tokens = sum(len(tokenizer.encode(line).ids) for line in lines)
print('tokens', tokens, 'seconds', time.perf_counter() - begin)
"""


def measured(command, **environment):
    """The number of tokens, and the seconds."""
    run = subprocess.run(command, env=os.environ | environment, capture_output=True, text=True, check=False)
    found = re.search(r'tokens (\d+) seconds ([\d.e-]+)', run.stdout)
    if not found:
        sys.exit(f'{command[0]} failed:\n{run.stdout}{run.stderr}')
    return int(found[1]), float(found[2])


def main():
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    program, text = sys.argv[1:3]
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    megabytes = os.path.getsize(text) / 1e6
    print(f'{"tokenizer":20} {"tokenizers":>10} {"Hortator":>10} {"ratio":>6}   (MB/s, medians of {ROUNDS})')
    for folder in sys.argv[3:]:
        theirs, ours = [], []
        for _ in range(ROUNDS):
            expected, seconds = measured([sys.executable, '-c', ENCODE, folder, text], TOKENIZERS_PARALLELISM='false')
            theirs.append(seconds)
            tokens, seconds = measured([program, '[.speed]'], HORTATOR_SPEED_TOKENIZER=folder, HORTATOR_SPEED_TEXT=text)
            ours.append(seconds)
            if tokens != expected:
                sys.exit(f'{folder}: {tokens} tokens, tokenizers has {expected}')
        ratio = statistics.median(t / o for t, o in zip(theirs, ours))
        rates = [megabytes / statistics.median(seconds) for seconds in (theirs, ours)]
        print(f'{os.path.basename(folder.rstrip("/")):20} {rates[0]:10.2f} {rates[1]:10.2f} {ratio:6.2f}')


main()
