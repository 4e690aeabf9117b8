#!/usr/bin/env bash
# The build is configured again if anything outside the tree that the configuration depends on has changed, and only then.
set -euo pipefail
# shellcheck source=tests/setup/support.sh
. "$(dirname "$0")/support.sh"
copy_tree
cp "$source_tree/CMakePresets.json" "$tree"
. "$tree/share/setup/common.sh"
. "$tree/share/setup/build.sh"
# shellcheck disable=SC2034
found_libtorch=/opt/libtorch mpi=openmpi libtorch=$scratch/libtorch build_tests=OFF
mkdir -p "$scratch/bin" "$libtorch"
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
mkdir "$libtorch/nvidia" "$libtorch/nvidia/nccl"
expect_new 'NCCL beside LibTorch'
export CXXFLAGS=-O3
expect_new 'CXXFLAGS'
export HDF5_ROOT=/opt/hdf5
expect_new 'HDF5_ROOT'
build_tests=ON
expect_new 'tests'
echo >>"$tree/CMakePresets.json"
expect_new 'another preset'
