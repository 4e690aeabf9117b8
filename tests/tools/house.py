"""Measures the structure of the sources: prints each figure with its bar, and exits with 1 where a bar is missed.

Run by house.sh. The product is src/ and include/; the other figures also cover share/bench/.
"""
import collections
import os
import re
import statistics
import subprocess
import sys

FUNCTION_P95, FUNCTION_MAX = 18, 60
FOLDER_MEDIAN, FOLDER_MAX = 12, 35
SOURCE_MAX = 500
PRODUCT_MAX = 170_700
HEADERS_BEHIND = 120
EVERYTHING = ('include/hortator/hortator.hpp', 'include/hortator/precompiled.hpp')  # whose purpose is to include all
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
    """(first line, lines of code) of each function and lambda that has a body."""
    found, head = [], []  # head: tokens since the last ; { or }
    scopes = []  # of each open brace: the lines of the function that it began, or None; the head to continue with
    for match in TOKEN.finditer(text):
        token = match.group()
        if match['comment'] or match['directive']:
            continue
        bodies = [lines for lines, _ in scopes if lines is not None]
        line = text.count('\n', 0, match.start()) + 1
        for lines in bodies:
            lines.add(line)
        if not bodies and head.count('(') > head.count(')') and token in '{};':  # a default argument
            continue
        if token == '{':
            initialises = not bodies and is_initialiser(head)
            begins = not initialises and (is_lambda(head) if bodies else is_signature(head))
            scopes.append(({line} if begins else None, head + ['{}'] if initialises else []))
            head = []
        elif token == '}':
            lines, head = scopes.pop() if scopes else (None, [])
            if lines is not None:
                found.append((min(lines), len(lines)))
        elif token == ';':
            head = []
        else:
            head.append(token)
    return found


def is_lambda(head):
    return re.search(r'\] (\([^()]*(\([^()]*\)[^()]*)*\) )?(mutable )?(noexcept )?(- > [\w:<> ]+ )?$', ' '.join(head) + ' ') is not None


def is_initialiser(head):
    """Whether a brace after these tokens begins the value of a member in a constructor's list."""
    return ')' in head and ':' in head[head.index(')'):] and re.fullmatch(r'\w+|>', head[-1]) and head[-1] not in ('const', 'noexcept', 'override')


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


def headers_behind(names):
    """The number of headers of ours that each header includes, directly and indirectly."""
    headers = {name for name in names if name.endswith(('.hpp', '.h', '.inc'))}
    direct = {}
    for name in headers:
        included = re.findall(r'^\s*#\s*include\s+["<]([^">]+)[">]', read(name), re.M)
        direct[name] = {path for file in included for path in ('src/' + file, 'include/' + file) if path in headers}
    behind = {}
    for name in headers - set(EVERYTHING):
        seen, rest = {name}, [name]
        while rest:
            new = direct[rest.pop()] - seen
            seen |= new
            rest += new
        behind[name] = len(seen) - 1
    return behind


def main():
    product = sources('src', 'include')
    all_sources = product + sources('share/bench')
    failed = []

    def show(what, value, bar, is_met, where=''):
        print(f'{what:<44} {value:>10}  bar {bar:<8} {"ok" if is_met else "MISSED"}{"  " + where if where and not is_met else ""}')
        if not is_met:
            failed.append(what)

    folders = collections.Counter(os.path.dirname(name) for name in all_sources)
    largest = max(folders, key=folders.get)
    median = statistics.median(folders.values())
    show('sources in a folder, median', median, FOLDER_MEDIAN, median <= FOLDER_MEDIAN)
    show('sources in a folder, max', folders[largest], FOLDER_MAX, folders[largest] <= FOLDER_MAX, largest)

    rooms = subprocess.run(['.ci/checks/rooms.sh'], capture_output=True, text=True, check=False)
    show('breaches of the rules between rooms', len(rooms.stdout.split('\n    ')) - 1, 0, rooms.returncode == 0, rooms.stdout)

    lengths = [(length, f'{name}:{line}') for name in all_sources for line, length in functions(read(name))]
    p95 = percentile([length for length, _ in lengths], 0.95)
    longest = max(lengths)
    show('lines of a function, 95th percentile', p95, FUNCTION_P95, p95 <= FUNCTION_P95)
    show('lines of a function, max', longest[0], FUNCTION_MAX, longest[0] <= FUNCTION_MAX, longest[1])

    sizes = {name: read(name).count('\n') for name in all_sources}
    longest = max(sizes, key=sizes.get)
    show('lines of a source, max', sizes[longest], SOURCE_MAX, sizes[longest] <= SOURCE_MAX, longest)
    lines = sum(sizes[name] for name in product)
    show('lines of the product', lines, PRODUCT_MAX, lines <= PRODUCT_MAX)

    behind = headers_behind(product)
    most = max(behind, key=behind.get)
    show('headers behind a header, max', behind[most], HEADERS_BEHIND, behind[most] <= HEADERS_BEHIND, most)

    language = subprocess.run(['.ci/checks/language.sh'], capture_output=True, text=True, check=False)
    show('breaches of the word list', language.stdout.count('\n'), 0, language.returncode == 0, language.stdout.split('\n')[0])

    pairs = duplicates(all_sources)
    show(f'duplicates of {DUPLICATE} lines', len(pairs), 0, not pairs, '; '.join(' = '.join(pair) for pair in pairs[:20]))
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
