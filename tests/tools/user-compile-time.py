"""How long users' programs take to compile: user-compile-time.py BUILD_FOLDER

Compiles LibTorch's headers alone, ours, the program of `hortator new`, the same training in LibTorch alone, and each example, with the compiler and paths
of the build folder's examples, optimised as the program of `hortator new` is, and without ccache. Prints seconds of the processor and the compiler's
peak memory of each. On a busy machine all of them are longer. The last lines are the ratios that decisions.md names.
"""
import os
import re
import shlex
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
HEADERS = ['ATen/ATen.h', 'torch/nn/module.h', 'torch/torch.h', 'hortator/hortator.hpp']


def compiler(build):
    """The compiler and the options of the example `digits`, without its files, its precompiled header and the warnings."""
    command = subprocess.run(['ninja', '-C', build, '-t', 'commands', 'digits'], capture_output=True, text=True, check=True).stdout
    line = next(row for row in command.split('\n') if 'digits.dir' in row and ' -c ' in row)
    arguments = shlex.split(line[re.search(r'(\S*(?:c|g|clang)\+\+\S*) ', line).start():])
    kept, skip = [], 0
    for argument in arguments:
        if skip:
            skip -= 1
        elif argument in ('-include', '-o', '-c', '-MF', '-MT', '-Xclang', '-mllvm'):
            skip = 1
        elif not argument.startswith(('-W', '-M', '-fpch', '-O', '--start-no', '--end-no')):
            kept.append(argument)
    return [*kept, '-O1']


def timed(what, command, folder):
    process = subprocess.Popen(command, cwd=folder)
    _, status, usage = os.wait4(process.pid, 0)
    if status != 0:
        sys.exit(f'{what} does not compile')
    seconds = usage.ru_utime + usage.ru_stime
    print(f'{seconds:7.1f} s {usage.ru_maxrss / 1024:6.0f} MB  {what}', flush=True)
    return seconds


def new_program(build, folder):
    subprocess.run([os.path.join(build, 'bin', 'hortator'), 'new', 'fresh'], cwd=folder, check=True, stdout=subprocess.DEVNULL)
    return os.path.join(folder, 'fresh', 'train.cpp')


def precompiled(folder):
    """What the program's CMakeLists.txt precompiles, as one header."""
    with open(os.path.join(folder, 'fresh', 'CMakeLists.txt'), encoding='utf-8') as text:
        headers = re.search(r'target_precompile_headers\(\w+ PRIVATE ([^)]*)\)', text.read())[1].split()
    path = os.path.join(folder, 'precompiled.hpp')
    with open(path, 'w', encoding='utf-8') as out:
        out.writelines(f'#include {header}\n' for header in headers)
    return path


def main():
    if len(sys.argv) != 2:
        print(__doc__)
        return 2
    build = os.path.abspath(sys.argv[1])
    command = compiler(build)
    with tempfile.TemporaryDirectory() as folder:
        output = ['-o', os.path.join(folder, 'object.o')]
        for header in HEADERS:
            path = os.path.join(folder, 'alone.cpp')
            with open(path, 'w', encoding='utf-8') as out:
                out.write(f'#include <{header}>\n')
            timed(f'<{header}>', command + output + ['-c', path], folder)
        program = new_program(build, folder)
        plain = os.path.join(ROOT, 'tests', 'tools', 'plain_training.cpp')
        alone, ours = zip(*((timed('the same training in LibTorch alone', command + output + ['-c', plain], folder),
                             timed('hortator new', command + output + ['-c', program], folder)) for _ in range(3)))
        header = precompiled(folder)
        instantiate = ['-fpch-instantiate-templates'] if 'clang' in command[0] else []  # as CMake does
        timed("hortator new: its precompiled header, once", command + instantiate + ['-x', 'c++-header', header, '-o', header + '.gch'], folder)
        quick = [timed('hortator new, with the precompiled header', command + output + ['-include', header, '-c', program], folder) for _ in range(3)]
        ratios = {'hortator new / LibTorch alone': min(ours) / min(alone), 'with the precompiled header / without': min(quick) / min(ours)}
        examples = os.path.join(ROOT, 'share', 'examples')
        for name in sorted(os.listdir(examples)):
            source = os.path.join(examples, name, 'main.cpp')
            if os.path.exists(source):
                timed(f'share/examples/{name}', command + output + ['-I', os.path.dirname(source), '-c', source], build)
    for what, ratio in ratios.items():
        print(f'{ratio:7.2f}  {what}')
    return 0


if __name__ == '__main__':
    sys.exit(main())
