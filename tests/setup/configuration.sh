#!/usr/bin/env bash
# The build is configured again if anything outside the tree that the configuration depends on has changed, and only then.
set -euo pipefail
# shellcheck source=tests/setup/support.sh
. "$(dirname "$0")/support.sh"
copy_tree
cp "$source_tree/CMakePresets.json" "$tree"
. "$tree/share/setup/common.sh"
. "$tree/share/setup/build.sh"
. "$tree/share/setup/compiler.sh"
# shellcheck disable=SC2034
found_libtorch=$'LIBTORCH\t/opt/torch\t2.15.0' mpi=openmpi libtorch=$scratch/libtorch build_tests=OFF gpu=0 with_cuda=AUTO compiler=/usr/bin/c++
mkdir -p "$scratch/bin"
PATH=$scratch/bin:$PATH

before=$(configuration)
[ "$(configuration)" = "$before" ] || wrong 'the configuration differs although nothing has changed'

# expect_new WHAT: the configuration differs from the previous one
expect_new() {
  local now
  now=$(configuration)
  [ "$now" != "$before" ] || wrong "not detected: $1"
  before=$now
}

printf '#!/bin/sh\n' >"$scratch/bin/clang++-99"
chmod +x "$scratch/bin/clang++-99"
expect_new 'a clang that the tests installed after a job had configured the build'
cp "$scratch/bin/clang++-99" "$scratch/bin/cmake"
expect_new 'another CMake'
compiler=/usr/bin/clang++-16
expect_new 'another compiler'
with_cuda=OFF
expect_new 'CUDA or not'
export CXXFLAGS=-O3
expect_new 'CXXFLAGS'
export HDF5_ROOT=/opt/hdf5
expect_new 'HDF5_ROOT'
build_tests=ON
expect_new 'tests'
echo >>"$tree/CMakePresets.json"
expect_new 'another preset'

# CUDA is in build/gpu only, so that build/release does not depend on what else was downloaded; with a LibTorch of the user's CMake decides
expect_cuda() { choose_cuda; [ "$with_cuda" = "$1" ] || wrong "CUDA is $with_cuda, expected $1"; }
expect_cuda AUTO
found_libtorch=$(printf '.deps\t%s/torch\t2.15.0' "$libtorch")
expect_cuda OFF
# shellcheck disable=SC2034
gpu=1
expect_cuda ON

# The compiler: CXX; that of the build folder; the newest clang that has a C++ library; the default.
build=$scratch/build
mkdir "$build"
clang() { printf '#!/bin/sh\nexit %s\n' "$2" >"$scratch/bin/clang++-$1" && chmod +x "$scratch/bin/clang++-$1"; }
clang 99 1
clang 98 0
clang 97 0
unset CXX
expect_compiler() { choose_compiler >"$scratch/log"; [ "$compiler" = "$1" ] || wrong "the compiler is $compiler, expected $1"; }
expect_compiler "$scratch/bin/clang++-98"
[[ $(cat "$scratch/log") == *"C++ compiler: $scratch/bin/clang++-98"*CXX=g++* ]] || wrong "the log is: $(cat "$scratch/log")"
for release in 98 97; do clang "$release" 1; done
newest_clang() { return 1; }  # nor one of this machine
expect_compiler "$(command -v c++ || command -v g++)"
clang 97 0
echo "CMAKE_CXX_COMPILER:FILEPATH=$scratch/bin/clang++-97" >"$build/CMakeCache.txt"
expect_compiler "$scratch/bin/clang++-97"
export CXX=/opt/bin/g++-14
expect_compiler /opt/bin/g++-14
unset CXX
rm "$scratch/bin/clang++-97"
expect_compiler "$(command -v c++ || command -v g++)"
