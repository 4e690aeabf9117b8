"""Where a build spends its time: build-time.py BUILD_FOLDER [ROWS]

Reads what ninja has recorded. Prints the seconds of each target (compiling and linking), the slowest steps, and for each of the project's
headers the seconds of the compilations that read it: an upper bound of what a change of that header, or its absence, costs or saves.
Steps that ran at the same time are added up.
"""
import collections
import os
import re
import subprocess
import sys


def steps(build):
    """{output: seconds} of the last run of each step."""
    seconds = {}
    with open(os.path.join(build, '.ninja_log'), encoding='utf-8') as log:
        for row in log:
            if row.startswith('#'):
                continue
            start, end, _, output, _ = row.rstrip('\n').split('\t')
            seconds[output] = (int(end) - int(start)) / 1000
    return seconds


def headers(build):
    """{output: the files that its compilation read}"""
    listed = subprocess.run(['ninja', '-C', build, '-t', 'deps'], capture_output=True, text=True, check=True).stdout
    read, output = {}, None
    for row in listed.split('\n'):
        if row.startswith('    '):
            read[output].append(row.strip())
        elif ': #deps' in row:
            output = row.split(': #deps')[0]
            read[output] = []
    return read


def target_of(output):
    compiled = re.search(r'CMakeFiles/(\w+)\.dir/', output)
    return compiled[1] if compiled else os.path.basename(output)


def show(title, sums, rows):
    print(f'\n{title}')
    for name, seconds in sorted(sums.items(), key=lambda item: -item[1])[:rows]:
        print(f'{seconds:9.1f} s  {name}')


def main():
    if len(sys.argv) < 2:
        print(__doc__)
        return 2
    build, rows = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 25
    seconds = steps(build)
    by_target = collections.Counter()
    for output, time in seconds.items():
        by_target[target_of(output)] += time
    by_header = collections.Counter()
    for output, files in headers(build).items():
        for file in files:
            ours = re.search(r'(?:^|/)((?:src|include|share|tests)/.*\.hpp)$', file)
            if ours and '.deps' not in file:
                by_header[ours[1]] += seconds.get(output, 0)
    print(f'{sum(seconds.values()):.0f} s in {len(seconds)} steps')
    show('by target', by_target, rows)
    show('slowest steps', seconds, rows)
    show('by header (compilations that read it)', by_header, rows)
    return 0


if __name__ == '__main__':
    sys.exit(main())
