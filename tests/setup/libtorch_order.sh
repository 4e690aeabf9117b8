#!/usr/bin/env bash
# The set-up uses the first of several LibTorchs in a fixed order, and prints its source; a folder without LibTorch that the user named is an error.
set -euo pipefail
# shellcheck source=tests/setup/support.sh
. "$(dirname "$0")/support.sh"
command -v cmake >/dev/null || { echo 'skipped: cmake is not installed'; exit 77; }
copy_tree

torch() { # FOLDER PATCH
  mkdir -p "$1/lib" "$1/include/ATen/core" "$1/include/torch/headeronly"
  touch "$1/lib/libtorch_cpu.so" "$1/include/ATen/core/Tensor.h"
  printf '#define TORCH_VERSION_%s\n' 'MAJOR 2' 'MINOR 12' "PATCH $2" >"$1/include/torch/headeronly/version.h"
}
for n in 1 2 3 4; do torch "$scratch/$n/torch" "$n"; done
torch "$tree/.deps/libtorch/torch" 5
mkdir "$scratch/bin"
printf '#!/bin/sh\ncat %s\n' "$scratch/of_python" >"$scratch/bin/python3"
chmod +x "$scratch/bin/python3"
echo "$scratch/4/torch" >"$scratch/of_python"

places=("Torch_DIR=$scratch/1/torch/share/cmake/Torch" "CMAKE_PREFIX_PATH=$scratch/absent:$scratch/2/torch" "LIBTORCH=$scratch/3/torch")
found() { run env -u Torch_DIR -u CMAKE_PREFIX_PATH -u LIBTORCH "PATH=$scratch/bin:$PATH" "$@" cmake -P "$tree/share/cmake/find_libtorch.cmake"; }
is() { # SOURCE FOLDER VERSION
  expect_code 0
  [ "$output" = "$(printf '%s\t%s\t%s' "$@")" ] || wrong "expected the LibTorch of $1"
}
found "${places[@]}"
is Torch_DIR "$scratch/1/torch" 2.12.1
found "${places[@]:1}"
is CMAKE_PREFIX_PATH "$scratch/2/torch" 2.12.2
found "${places[@]:2}"
is LIBTORCH "$scratch/3/torch" 2.12.3
found
is 'active Python' "$scratch/4/torch" 2.12.4
: >"$scratch/of_python"
found
is .deps "$tree/.deps/libtorch/torch" 2.12.5
rm -r "$tree/.deps"
found
[ "$code" != 0 ] || wrong 'a LibTorch is found where there is none'

for name in LIBTORCH Torch_DIR; do
  found "$name=$scratch"
  [ "$code" != 0 ] || wrong "a folder without LibTorch in $name is not an error"
  output=$(tr -s ' \n' '  ' <<<"$output")  # undo CMake's line breaks
  expect_line "$name is set to '$scratch', which contains no LibTorch"
done
