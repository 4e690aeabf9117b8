"""Lists types that two files of one room's tests define differently under one name: test-types.py TESTS_FOLDER

The tests of a room are one program, in which a type has one definition; two would overwrite each other without an error. Types in unnamed
namespaces and of the rooms' own subfolders that are linked alone are not affected, but are simple to name differently as well.
"""
import collections
import pathlib
import re
import sys

TOKEN = re.compile(r'namespace\s*([\w:]*)\s*\{|(?:struct|class)\s+(\w+)(?:\s+final)?(?:\s*:\s*[^{;]*)?\s*\{|\{|\}')


def without_texts(source):
    source = re.sub(r'//[^\n]*', '', source)
    source = re.sub(r'R"(\w*)\(.*?\)\1"', '""', source, flags=re.S)
    source = re.sub(r'"(?:\\.|[^"\\\n])*"', '""', source)
    return re.sub(r"'(?:\\.|[^'\\\n])'", "' '", source)


def types_of(source):
    """The qualified names of the types that a file defines at namespace scope, outside of unnamed namespaces."""
    scopes = []
    for token in TOKEN.finditer(without_texts(source)):
        if token[0] == '}':
            if scopes:
                scopes.pop()
        elif token[0].startswith('namespace'):
            scopes.append(token[1] or None)
        elif token[2]:
            if all(scope is None or scope for scope in scopes) and None not in scopes:
                yield '::'.join([*scopes, token[2]])
            scopes.append('')
        else:
            scopes.append('')


def main():
    if len(sys.argv) != 2:
        print(__doc__)
        return 2
    found = 0
    for room in sorted(pathlib.Path(sys.argv[1], 'unit').iterdir()):
        files = collections.defaultdict(set)
        for file in [*room.rglob('*.hpp'), *room.rglob('*.cpp')]:
            for name in types_of(file.read_text(encoding='utf-8')):
                files[name].add(file.relative_to(room).as_posix())
        for name, places in sorted(files.items()):
            if len(places) > 1:
                found += 1
                print(f'{room.name}: {name} is defined in {", ".join(sorted(places))}: name one of them differently')
    return 1 if found else 0


if __name__ == '__main__':
    sys.exit(main())
