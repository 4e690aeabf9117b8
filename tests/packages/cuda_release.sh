#!/usr/bin/env bash
# cuda_release.sh CC: a toolkit of another major release than LibTorch's CUDA is rejected, with both releases and the way out.
set -euo pipefail
compiler=$1
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=tests/setup/support.sh
. "$here/../setup/support.sh"
mkdir -p "$scratch/torch/lib" "$scratch/cpu/lib"
cd "$scratch"
echo 'void cudart(void) {}' >cudart.c
echo 'void cudart(void); void use(void) { cudart(); }' >torch.c
"$compiler" -shared -fPIC -Wl,-soname,libcudart.so.12 cudart.c -o libcudart.so
"$compiler" -shared -fPIC torch.c -o torch/lib/libtorch_cuda.so -L. -lcudart
misfit() { # TOOLKIT TORCH
  echo "include($source_tree/share/cmake/hortator_cuda_release.cmake)
hortator_cuda_misfit($1 $scratch/$2 reason)
message(STATUS \"reason: '\${reason}'\")" >check.cmake
  run cmake -P check.cmake
  expect_code 0
}
misfit 13.0.88 torch
expect_line "the CUDA toolkit is 13.0.88, but the LibTorch at .*/torch was built with CUDA 12.*; load a module of CUDA 12.*, or set LIBTORCH to a LibTorch for CUDA 13'"
misfit 12.4.131 torch
expect_line "reason: ''"
misfit 13.0.88 cpu
expect_line "reason: ''"
