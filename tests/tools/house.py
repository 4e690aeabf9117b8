"""Measures the structure of the sources: prints each figure with its bar, and exits with 1 where a bar is missed.

Run by house.sh. What it counts: share/doc/architecture.md, "Measured".
"""
import collections
import os
import re
import statistics
import subprocess
import sys

FUNCTION_P95, FUNCTION_MAX = 17, 60
FOLDER_MEDIAN, FOLDER_MAX = 12, 35
SOURCE_MAX = 350
PRODUCT_MAX = 72_000
DUPLICATE = 12  # lines

TOKEN = re.compile(
    r'(?P<comment>//[^\n]*|/\*.*?\*/)|(?P<text>R"(?P<mark>[^()\s]{0,16})\(.*?\)(?P=mark)"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\')'
    r'|(?P<directive>^[ \t]*#(?:[^\n]*\\\n)*[^\n]*)|(?P<word>[A-Za-z_]\w*|\d[\w.\']*)|(?P<sign>[^\s\w])', re.S | re.M)


def sources(*roots):
    listed = subprocess.run(['git', 'ls-files', *roots], capture_output=True, text=True, check=True).stdout.split()
    return [name for name in listed if re.search(r'\.(hpp|cpp|h|cu|inc)$', name) and os.path.exists(name)]


def read(name):
    with open(name, encoding='utf-8', errors='replace') as file:
        return file.read()


def functions(text):
    """(first line, lines of code) of each function that has a body; lambdas belong to the function around them."""
    found, scopes, head, lines = [], [], [], set()  # head: tokens since the last ; { or }
    body = None  # depth of the function that is read
    for match in TOKEN.finditer(text):
        token = match.group()
        if match['comment'] or match['directive']:
            continue
        if body is not None:
            lines.add(text.count('\n', 0, match.start()))
        elif head.count('(') > head.count(')') and token in '{};':  # a default argument
            continue
        if token == '{':
            if body is None and is_signature(head):
                body, lines = len(scopes), {text.count('\n', 0, match.start())}
            scopes.append(token)
            head = []
        elif token == '}':
            if scopes:
                scopes.pop()
            if body == len(scopes):
                found.append((min(lines) + 1, len(lines)))
                body = None
            head = []
        elif token == ';':
            head = []
        else:
            head.append(token)
    return found


def is_signature(head):
    """Whether a brace after these tokens begins a function's body."""
    if '(' not in head or head[-1] in ('=', 'return') or head[0] in ('namespace', 'enum', 'union'):
        return False
    return not re.search(r'^(template < [^(]*> )?(class|struct) ', ' '.join(head))


def percentile(values, share):
    return sorted(values)[min(len(values) - 1, int(share * len(values)))] if values else 0


def duplicates(names):
    """Pairs of places that share DUPLICATE lines or more, without blank lines, includes and closing brackets."""
    seen, pairs = {}, []
    for name in names:
        lines = [(number, line.strip()) for number, line in enumerate(read(name).split('\n'), 1)]
        lines = [(n, s) for n, s in lines if s and not s.startswith(('#include', '//', 'namespace')) and not re.fullmatch(r'[{}()\];,]*', s)]
        last = -DUPLICATE
        for at in range(len(lines) - DUPLICATE + 1):
            window = tuple(s for _, s in lines[at:at + DUPLICATE])
            if window in seen and at - last >= DUPLICATE:
                pairs.append((seen[window], f'{name}:{lines[at][0]}'))
                last = at
            seen.setdefault(window, f'{name}:{lines[at][0]}')
    return pairs


def main():
    product = sources('src', 'include')
    failed = []

    def show(what, value, bar, is_met, where=''):
        print(f'{what:<44} {value:>10}  bar {bar:<8} {"ok" if is_met else "MISSED"}{"  " + where if where and not is_met else ""}')
        if not is_met:
            failed.append(what)

    folders = collections.Counter(os.path.dirname(name) for name in product)
    largest = max(folders, key=folders.get)
    median = statistics.median(folders.values())
    show('sources in a folder, median', median, FOLDER_MEDIAN, median <= FOLDER_MEDIAN)
    show('sources in a folder, max', folders[largest], FOLDER_MAX, folders[largest] <= FOLDER_MAX, largest)

    rooms = subprocess.run(['.ci/checks/rooms.sh'], capture_output=True, text=True, check=False)
    show('breaches of the rules between rooms', len(rooms.stdout.split('\n    ')) - 1, 0, rooms.returncode == 0, rooms.stdout)

    lengths = [(length, f'{name}:{line}') for name in product for line, length in functions(read(name))]
    p95 = percentile([length for length, _ in lengths], 0.95)
    longest = max(lengths)
    show('lines of a function, 95th percentile', p95, FUNCTION_P95, p95 <= FUNCTION_P95)
    show('lines of a function, max', longest[0], FUNCTION_MAX, longest[0] <= FUNCTION_MAX, longest[1])

    sizes = {name: read(name).count('\n') for name in product}
    longest = max(sizes, key=sizes.get)
    show('lines of a source, max', sizes[longest], SOURCE_MAX, sizes[longest] <= SOURCE_MAX, longest)
    show('lines of the product', sum(sizes.values()), PRODUCT_MAX, sum(sizes.values()) <= PRODUCT_MAX)

    language = subprocess.run(['.ci/checks/language.sh'], capture_output=True, text=True, check=False)
    show('breaches of the word list', language.stdout.count('\n'), 0, language.returncode == 0, language.stdout.split('\n')[0])

    pairs = duplicates(product)
    show(f'duplicates of {DUPLICATE} lines', len(pairs), 0, not pairs, '; '.join(' = '.join(pair) for pair in pairs[:20]))
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
