#!/usr/bin/env bash
# components.sh BUILD_DIR CXX: find_package(Hortator COMPONENTS ...) finds what the build has, and says what it does not have.
set -euo pipefail
build=$1 compiler=$2
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=tests/setup/support.sh
. "$here/../setup/support.sh"
cat >"$scratch/CMakeLists.txt" <<'CMAKE'
cmake_minimum_required(VERSION 3.25)
project(components LANGUAGES CXX)
set(before "${CMAKE_MODULE_PATH}")
find_package(Hortator ${REQUIRED} COMPONENTS ${WANTED} OPTIONAL_COMPONENTS ${OPTIONAL})
foreach(fact IN ITEMS FOUND CUDA CUDA_FOUND PNG_FOUND MPI MPI_VERSION HDF5_VERSION LIBTORCH_VERSION)
  message(STATUS "${fact}=${Hortator_${fact}}")
endforeach()
if(Hortator_FOUND AND NOT TARGET Hortator::hortator)
  message(FATAL_ERROR "Hortator::hortator is missing")
endif()
if(NOT CMAKE_MODULE_PATH STREQUAL before)
  message(FATAL_ERROR "CMAKE_MODULE_PATH is '${CMAKE_MODULE_PATH}'")
endif()
CMAKE
configure() { # PACKAGE OPTION...
  run cmake -S "$scratch" -B "$scratch/build" --fresh "-DCMAKE_CXX_COMPILER=$compiler" "-DHortator_DIR=$1" "${@:2}"
  output=$(tr -s ' ' <<<"$output")
}
fact() { sed -n "s/^-- $1=//p" <<<"$output"; }
configure "$build"
expect_code 0
[ "$(fact FOUND)" = 1 ] || [ "$(fact FOUND)" = TRUE ] || wrong 'Hortator is not found'
has=$(fact CUDA)
for name in MPI MPI_VERSION HDF5_VERSION LIBTORCH_VERSION; do [ -n "$(fact "$name")" ] || wrong "Hortator_$name is empty"; done
[ "$(fact CUDA_FOUND)" = "$has" ] || wrong 'Hortator_CUDA and Hortator_CUDA_FOUND differ'

# The same package of a build without CUDA, and of one with it.
for state in TRUE FALSE; do
  mkdir -p "$scratch/$state"
  cp "$build"/Hortator*.cmake "$build"/*[lL]ib[tT]orch*.cmake "$build"/hortator_compatibility.cmake "$scratch/$state"
  sed -i "s/^set(Hortator_CUDA\\(_FOUND\\)\\? .*)/set(Hortator_CUDA\\1 $state)/" "$scratch/$state/HortatorConfig.cmake"
done
configure "$scratch/TRUE" -DREQUIRED=REQUIRED -DWANTED=CUDA
expect_code 0
configure "$scratch/FALSE" -DREQUIRED=REQUIRED -DWANTED=CUDA
[ "$code" != 0 ] || wrong 'a component that is missing is accepted'
expect_line 'This Hortator was built without CUDA'
configure "$scratch/FALSE" -DREQUIRED=REQUIRED -DOPTIONAL=CUDA
expect_code 0
[ "$(fact CUDA_FOUND)" = FALSE ] || wrong 'the optional component is reported as found'
configure "$build" -DREQUIRED=REQUIRED -DWANTED=Rocm
[ "$code" != 0 ] || wrong 'an unknown component is accepted'
expect_line "Hortator has no component 'Rocm'"
