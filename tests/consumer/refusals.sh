#!/usr/bin/env bash
# A project with another LibTorch, MPI, HDF5 or C++ library than Hortator's fails to configure, and such a program fails to start; the message
# has both versions.
#   refusals.sh BUILD_DIR CXX MPI HDF5
set -euo pipefail
build=$1 compiler=$2 mpi=$3 hdf5=$4
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=tests/setup/support.sh
. "$here/../setup/support.sh"
torch=$(sed -n 's/^LibTorch_ROOT_DIR[^=]*=//p' "$build/CMakeCache.txt")
[ -n "$torch" ] || torch=$(sed -n 's|^  set(LibTorch_ROOT_DIR "\(.*\)")|\1|p' "$build/HortatorConfig.cmake")

# Stand-ins that CMake finds as other versions of the libraries.
mkdir "$scratch/mpi" "$scratch/torch"
other='MPICH 4\.0\.2'
printf '#define MPICH_VERSION "4.0.2"\n' >"$scratch/mpi/mpi.h"
# A build for several MPIs accepts each of them, so that another release of Open MPI is to be refused.
if [ "$mpi" = MPICH ] || [ -d "$build/lib/hortator" ]; then
  other='Open MPI 3\.1\.6'
  printf '#define OMPI_%s_VERSION %s\n' MAJOR 3 MINOR 1 RELEASE 6 >"$scratch/mpi/mpi.h"
fi
echo "set(MPI_CXX_HEADER_DIR $scratch/mpi)" >"$scratch/mpi.cmake"
found_hdf5() { printf 'set(HDF5_%s)\n' 'FOUND TRUE' "VERSION $1" "IS_PARALLEL $2"; }
found_hdf5 1.8.23 TRUE >"$scratch/hdf5.cmake"
found_hdf5 "$hdf5" TRUE >"$scratch/same_hdf5.cmake"
found_hdf5 "$hdf5" FALSE >"$scratch/serial_hdf5.cmake"
echo 'add_compile_definitions(_GLIBCXX_USE_CXX11_ABI=0)' >"$scratch/abi.cmake"
mkdir -p "$scratch/torch/lib" "$scratch/torch/include/ATen/core" "$scratch/torch/include/torch/headeronly"
touch "$scratch/torch/lib/libtorch_cpu.so" "$scratch/torch/include/ATen/core/Tensor.h"
printf '#define TORCH_VERSION_MAJOR 2\n#define TORCH_VERSION_MINOR 11\n#define TORCH_VERSION_PATCH 7\n' >"$scratch/torch/include/torch/headeronly/version.h"

configure() { run cmake -S "$here/misfit" -B "$scratch/project" --fresh "-DCMAKE_CXX_COMPILER=$compiler" "-DCMAKE_PREFIX_PATH=$build" "$@"; }
refused() { # PATTERN OPTION...: configuring with these options fails with a line that matches
  local pattern=$1
  shift
  configure "$@"
  [ "$code" != 0 ] || wrong "configuration succeeds with $*"
  # undo CMake's line breaks
  output=$(tr -s ' \n' '  ' <<<"$output")
  expect_line "$pattern"
}
configure
expect_code 0
refused "$mpi.* $other" "-DBEFORE=$scratch/mpi.cmake"
refused "$mpi.* $other" "-DAFTER=$scratch/mpi.cmake"
refused "HDF5 $hdf5.* HDF5 1\\.8\\.23" "-DBEFORE=$scratch/hdf5.cmake"
refused "HDF5 $hdf5.* HDF5 1\\.8\\.23" "-DAFTER=$scratch/hdf5.cmake"
for when in BEFORE AFTER; do refused "a parallel HDF5 $hdf5.* a serial HDF5 $hdf5" "-D$when=$scratch/serial_hdf5.cmake"; done
configure "-DBEFORE=$scratch/same_hdf5.cmake"
expect_code 0
refused 'libstdc\+\+, but the project is compiled with libstdc\+\+ with the ABI before' "-DBEFORE=$scratch/abi.cmake"
refused 'libstdc\+\+, but the project is compiled with libstdc\+\+ with the ABI before' -DCMAKE_CXX_FLAGS=-D_GLIBCXX_USE_CXX11_ABI=0
LIBTORCH=$scratch/torch refused 'built with LibTorch [0-9.]+, but LibTorch 2\.11\.7 was found'

# At program start: programs compiled without CMake, so that no check has rejected them before.
cat >"$scratch/program.cpp" <<'CPP'
#include <hortator/run.hpp>
int main(int argc, char** argv) {
  return hortator::run(argc, argv, [] {});
}
CPP
mkdir -p "$scratch/other/torch"
echo '#define TORCH_VERSION "2.11.7"' >"$scratch/other/torch/version.h"
# stand-ins of libraries: another MPI besides ours, and wrappers that report another version of ours
echo 'int hortator_stand_in;' >"$scratch/stand_in.c"
cat >"$scratch/mpi_version.c" <<'C'
#include <string.h>
int MPI_Get_library_version(char* version, int* length) {
  strcpy(version, "Open MPI v99.1.0, package: stand-in");
  *length = (int)strlen(version);
  return 0;
}
C
cat >"$scratch/hdf5.c" <<'C'
int H5get_libversion(unsigned* major, unsigned* minor, unsigned* release) {
  *major = 1, *minor = 99, *release = 3;
  return 0;
}
C
"$compiler" -x c -shared -fPIC "$scratch/stand_in.c" -Wl,-soname,libmpi.so.12 -o "$scratch/libmpi.so.12"
"$compiler" -x c -shared -fPIC "$scratch/mpi_version.c" -o "$scratch/mpi_version.so"
"$compiler" -x c -shared -fPIC "$scratch/hdf5.c" -o "$scratch/hdf5.so"
"$compiler" -x c -shared -fPIC "$scratch/stand_in.c" -Wl,-soname,libhdf5_serial.so.103 -o "$scratch/libhdf5_serial.so.103"
# a stand-in for our HDF5 that is serial: the same release and all functions that Hortator calls, except the parallel ones
program=$(find "$build" -path '*/hortator/hortator-bench' -print -quit)
name=$(ldd "$program" | grep -oE '^\s*libhdf5[^ ]*' | tr -d '[:space:]')
mkdir "$scratch/serial"
IFS=. read -r major minor release <<<"${hdf5//[^0-9.]/}"
{
  echo "int H5get_libversion(unsigned* a, unsigned* b, unsigned* c) { *a = $major, *b = $minor, *c = $release; return 0; }"
  nm -D --undefined-only "$program" | grep -oE ' H5[A-Za-z0-9_]+' | grep -vE 'mpio|mpi|H5get_libversion' | sort -u | sed 's/.*_g$/long&[64];/; t; s/.*/long&(void) { return 0; }/'
} >"$scratch/serial.c"
# with symbol versions, if HDF5 has them
nm -D --undefined-only "$program" | sed -nE 's/.* (H5[A-Za-z0-9_]+)@+(.+)$/\2 \1/p' |
  awk '{ names[$1] = names[$1] " " $2 ";" } END { for (version in names) print version " { global:" names[version] " };" }' >"$scratch/serial.map"
[ ! -s "$scratch/serial.map" ] || versions=-Wl,--version-script=$scratch/serial.map
[ -z "$name" ] || "$compiler" -x c -shared -fPIC "$scratch/serial.c" "-Wl,-soname,$name" ${versions:+"$versions"} -o "$scratch/serial/$name"
source_tree=$(cd "$here/../.." && pwd)
program() { # NAME [FLAG...]
  "$compiler" -std=c++20 "${@:2}" -I "$source_tree/include" -I "$build/include" -I "$torch/include" -I "$torch/include/torch/csrc/api/include" \
    "$scratch/program.cpp" -L "$build/lib" -lhortator "-Wl,-rpath,$build/lib" -Wl,--allow-shlib-undefined -o "$scratch/$1"
}
program plain
program other_torch -I "$scratch/other"
program other_abi -D_GLIBCXX_USE_CXX11_ABI=0
cd "$scratch"
run ./plain
expect_code 0
run ./other_torch
expect_code 1
expect_line 'compiled with LibTorch 2\.11\.7, its Hortator with LibTorch [0-9]'
run ./other_abi
expect_code 1
expect_line 'compiled with libstdc\+\+ with the ABI before C\+\+11, its Hortator with libstdc\+\+ '
# `hortator bench` starts as any program does
bench=$build/bin/hortator
preloaded() { run env LD_PRELOAD="$1" "$bench" bench step --blocks 1 --steps 1; }
preloaded "$scratch/mpi_version.so"
expect_code 1
expect_line "loaded is Open MPI v99\\.1\\.0, this Hortator was built with $mpi"
preloaded "$scratch/libmpi.so.12"
expect_code 1
expect_line 'two MPIs, .*libmpi'
expect_line 'libmpi\.so\.12'
preloaded "$scratch/hdf5.so"
expect_code 1
expect_line "loaded HDF5 is HDF5 1\\.99\\.3, this Hortator was built with HDF5 $hdf5"
# an HDF5 of another library, which Hortator does not call
preloaded "$scratch/libhdf5_serial.so.103"
expect_code 0
# if HDF5 is not linked statically and LD_LIBRARY_PATH takes precedence over the program's RUNPATH
if [ -n "$name" ] && grep -q RUNPATH <<<"$(readelf -d "$program")"; then
  run env LD_LIBRARY_PATH="$scratch/serial" "$bench" bench step --blocks 1 --steps 1
  expect_code 1
  expect_line "$name, is serial; this Hortator was built with a parallel HDF5 $hdf5"
fi
