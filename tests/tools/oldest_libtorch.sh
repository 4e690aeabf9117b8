#!/usr/bin/env bash
# Checks Hortator against the oldest LibTorch that it accepts. Downloads its wheel into FOLDER (900 MB; later calls reuse it), configures a build
# for CPUs and compiles every source that includes LibTorch, without making code. --run builds these test programs for real, and runs them.
# Exits with 77 if the wheel cannot be downloaded.
#   oldest_libtorch.sh [--run TEST,...] FOLDER      e.g. oldest_libtorch.sh --run paging,step,formats /tmp/oldest
set -euo pipefail
usage() { sed -n '2,5p' "$0" >&2; exit 2; }
tests=''
if [ "${1:-}" = --run ]; then tests=${2:-} && shift 2; fi
[ $# = 1 ] || usage
mkdir -p "$1"
folder=$(cd "$1" && pwd)
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
oldest=$(sed -n 's/^find_package(LibTorch \([0-9.]*\))$/\1/p' "$root/share/cmake/HortatorDependencies.cmake")

if [ ! -e "$folder/torch/version.py" ]; then
  wheels() { python3 -m pip download -q --no-deps -d "$folder" "$@"; }
  wheels "torch==$oldest.*" || { echo "LibTorch $oldest cannot be downloaded" >&2; exit 77; }
  wheel=("$folder"/torch-*.whl)
  # What libtorch_cpu.so loads of CUDA, in the versions that the wheel asks for.
  mapfile -t needed < <(unzip -p "${wheel[0]}" '*.dist-info/METADATA' | sed -nE 's/^Requires-Dist: (nvidia-cuda-(runtime|cupti)[a-z0-9-]*==[0-9.]+).*/\1/p')
  [ ${#needed[@]} = 0 ] || wheels "${needed[@]}"
  for wheel in "$folder"/*.whl; do unzip -q -o "$wheel" 'torch/include/*' 'torch/lib/lib[cgt]*' 'nvidia/*/lib/*' -d "$folder" || [ $? = 11 ]; done
  rm -f "$folder"/torch/lib/libtorch_{cuda*,python}.so
  unzip -q -o "$folder"/torch-*.whl torch/version.py -d "$folder" # last: the download is complete
fi

build=$folder/build
LIBTORCH=$folder/torch cmake -S "$root" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_FLAGS_RELEASE=-O0 -DCMAKE_UNITY_BUILD=ON \
  -DHORTATOR_WITH_CUDA=OFF -DHORTATOR_BUILD_EXAMPLES=OFF
if [ -n "$tests" ]; then
  mapfile -t names < <(tr , '\n' <<<"$tests")
  cmake --build "$build" --target "${names[@]/#/test_}"
  exec ctest --test-dir "$build" --output-on-failure --no-tests=error -R "^($(IFS='|' && echo "${names[*]}"))\\.np"
fi

# The precompiled header first; then each source as the build would compile it.
cmake --build "$build" --target CMakeFiles/hortator_pch.dir/cmake_pch.hxx.gch
python3 - "$build" <<'PY'
import concurrent.futures
import json
import os
import shlex
import subprocess
import sys

build = sys.argv[1]
commands = [entry for entry in json.load(open(os.path.join(build, "compile_commands.json")))
            if "/torch/include" in entry["command"] and "c++-header" not in entry["command"] and "/tests/" not in entry["file"]]


def check(entry):
    command = shlex.split(entry["command"])
    at = command.index("-o")
    del command[at:at + 2]
    run = subprocess.run([*command, "-fsyntax-only"], cwd=entry["directory"], capture_output=True, text=True)
    return run.returncode, run.stderr


with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
    results = list(pool.map(check, commands))
failed = [message for code, message in results if code]
print("\n".join(failed))
print(f"{len(commands) - len(failed)} of {len(commands)} sources compile")
sys.exit(1 if failed or not commands else 0)
PY
