#!/usr/bin/env bash
# A dependency that is missing or unsuitable is a configuration error that says how to fix it.
#   dependencies.sh CACHE_OF_THE_BUILD C_COMPILER
# Stand-ins of CMake's find modules simulate the machines.
set -euo pipefail
cache=$1 compiler=$2
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=tests/setup/support.sh
. "$here/support.sh"
cd "$scratch"
mkdir modules

# Configures with the cached settings of the build, plus the given options.
mapfile -t same < <(grep -E '^(CMAKE_(C|CXX)_COMPILER|CMAKE_PREFIX_PATH|(LibTorch|HDF5|Boost|BOOST|MPI|nlohmann_json|yaml-cpp)_(ROOT|ROOT_DIR|DIR|HOME)|HORTATOR_MPI):' "$cache" | sed 's/^/-D/')
configure() { run cmake -S "$here/dependencies" -B build "-DSOURCES=$source_tree" "-DCMAKE_MODULE_PATH=$scratch/modules" "${same[@]}" -DHORTATOR_WITH_CUDA=OFF "$@"; }
# refused PROBLEM FIX OPTION...: configuring with these options fails; the message matches both patterns
refused() {
  rm -rf build
  cp -r well build  # reuse the results of the compiler tests
  configure "${@:3}"
  [ "$code" != 0 ] || wrong "configuration succeeds with ${*:3}"
  output=$(tr -s ' \n' '  ' <<<"$output")  # undo CMake's line breaks
  expect_line "$1"
  expect_line "$2"
}
configure
expect_code 0
expect_line 'all dependencies were found'
mv build well

refused 'LibTorch 2\.9 or newer was not found' 'Set LIBTORCH' -DCMAKE_DISABLE_FIND_PACKAGE_LibTorch=ON
mkdir -p torch/lib torch/include/ATen/core torch/include/torch/headeronly
touch torch/lib/libtorch_cpu.so torch/include/ATen/core/Tensor.h
of_version() { printf '#define TORCH_VERSION_%s\n' 'MAJOR 2' "MINOR $1" 'PATCH 9' >torch/include/torch/headeronly/version.h; }
of_version 8
refused 'LibTorch 2\.9 or newer was not found' 'Set LIBTORCH' "-DLibTorch_ROOT_DIR=$scratch/torch"
accepted() { # OPTION...
  rm -rf build
  cp -r well build
  configure "$@"
  expect_code 0
}
of_version 9
accepted "-DLibTorch_ROOT_DIR=$scratch/torch"
expect_no_line 'newer than the tested'
of_version 16
accepted "-DLibTorch_ROOT_DIR=$scratch/torch"
output=$(tr -s ' \n' '  ' <<<"$output")
expect_line 'LibTorch 2\.16\.9 is newer than the tested releases'
refused 'MPI was not found' 'Load the MPI module of your site, or install libopenmpi-dev' -DCMAKE_DISABLE_FIND_PACKAGE_MPI=ON
printf 'set(MPI_C_%s)\n' 'FOUND TRUE' 'VERSION 3.0' 'LIBRARIES /opt/mpi/lib/libmpi.so' >modules/FindMPI.cmake
refused "The MPI found \(/opt/mpi/lib/libmpi\.so\) implements version 3\.0 of the standard; Hortator needs 3\.1" 'Load a newer MPI module'
rm modules/FindMPI.cmake
refused "HORTATOR_MPI: 'nobodys' has no" 'Install that MPI and the HDF5 that belongs to it' --fresh -DHORTATOR_MPI=nobodys
refused 'HDF5 was not found' 'set HDF5_ROOT' -DCMAKE_DISABLE_FIND_PACKAGE_HDF5=ON
refused 'Boost\.Program_options was not found' 'install libboost-program-options-dev' -DCMAKE_DISABLE_FIND_PACKAGE_Boost=ON
refused 'yaml-cpp was not found' 'install libyaml-cpp-dev' -DCMAKE_DISABLE_FIND_PACKAGE_yaml-cpp=ON
refused 'nlohmann-json was not found' 'Install nlohmann-json3-dev' -DCMAKE_DISABLE_FIND_PACKAGE_nlohmann_json=ON

# stand-ins for CMake's FindHDF5
hdf5() { # VERSION PARALLEL [LIBRARY]
  printf 'set(HDF5_%s)\n' 'FOUND TRUE' "VERSION $1" "IS_PARALLEL $2" 'INCLUDE_DIRS /opt/hdf5/include' "C_LIBRARIES ${3:-hdf5}" >modules/FindHDF5.cmake
}
hdf5 1.14.5 FALSE
refused 'The HDF5 found at /opt/hdf5/include is serial' 'Point HDF5_ROOT at a parallel HDF5 built with your MPI'
hdf5 1.10.1 TRUE
refused 'HDF5 1\.10\.1 at /opt/hdf5/include is too old' 'set HDF5_ROOT'
echo 'int stand_in;' >stand_in.c
echo 'extern int stand_in; int* hdf5(void) { return &stand_in; }' >hdf5.c
"$compiler" -shared -fPIC stand_in.c -Wl,-soname,libmpi.so.99 -o libmpi.so.99
"$compiler" -shared -fPIC hdf5.c ./libmpi.so.99 -o libhdf5.so
hdf5 1.14.5 TRUE "$scratch/libhdf5.so"
refused 'libhdf5\.so was built with another MPI \(it needs libmpi\.so\.99, the MPI found has libmp' 'set HDF5_ROOT or MPI_HOME so that both agree'
rm modules/FindHDF5.cmake

# requested ROCm needs HIP, and a LibTorch for it
refused 'HORTATOR_WITH_ROCM=ON, but no HIP was found' 'set ROCM_PATH or load a ROCm module' -DHORTATOR_WITH_ROCM=ON
mkdir -p rocm/include/hip rocm/lib
touch rocm/include/hip/hip_runtime_api.h rocm/lib/libamdhip64.so
refused 'HORTATOR_WITH_ROCM=ON, but the LibTorch at .* is built without HIP' 'configure with HORTATOR_WITH_ROCM=OFF' -DHORTATOR_WITH_ROCM=ON \
        "-DCMAKE_PREFIX_PATH=$scratch/rocm"

# requested CUDA needs a toolkit, a LibTorch with CUDA, and the NCCL of that LibTorch
refused 'HORTATOR_WITH_CUDA=ON, but no CUDA toolkit was found' 'set CUDAToolkit_ROOT' -DHORTATOR_WITH_CUDA=ON -DCMAKE_DISABLE_FIND_PACKAGE_CUDAToolkit=ON
mkdir -p torch/lib site/nvidia/nccl/include site/nvidia/nccl/lib
printf '%s\n' 'set(CUDAToolkit_FOUND TRUE)' 'set(CUDAToolkit_VERSION 13.0)' 'add_library(CUDA::cudart INTERFACE IMPORTED)' >modules/FindCUDAToolkit.cmake
libtorch() { # HAS_CUDA
  printf 'set(LibTorch_%s)\n' 'FOUND TRUE' 'VERSION 2.15.0' "HAS_CUDA $1" "ROOT_DIR $scratch/torch" "SITE $scratch/site" >modules/FindLibTorch.cmake
  echo 'add_library(LibTorch::cuda INTERFACE IMPORTED)' >>modules/FindLibTorch.cmake
}
echo 'int ncclCommInitRank(void); int ncclCommShrink(void); int cuda(void) { return ncclCommInitRank() + ncclCommShrink(); }' >torch.c
"$compiler" -shared -fPIC torch.c -o torch/lib/libtorch_cuda.so
nccl() { # FUNCTION...
  printf 'int %s(void) { return 0; }\n' "$@" >nccl.c
  "$compiler" -shared -fPIC nccl.c -Wl,-soname,libnccl.so.2 -o site/nvidia/nccl/lib/libnccl.so.2
}
# without_cuda REASON [OPTION...]: AUTO configures without CUDA, and the summary prints the reason
without_cuda() {
  accepted -DHORTATOR_WITH_CUDA=AUTO "${@:2}"
  output=$(tr -s ' \n' '  ' <<<"$output")
  expect_line "off: .*\* CUDA, $1"
}
without_cuda 'no CUDA toolkit was found \(set CUDAToolkit_ROOT or load a CUDA module\)' -DCMAKE_DISABLE_FIND_PACKAGE_CUDAToolkit=ON
libtorch FALSE
without_cuda 'the LibTorch at .* is built without CUDA'
refused 'the LibTorch at .* is built without CUDA' 'configure with HORTATOR_WITH_CUDA=OFF' -DHORTATOR_WITH_CUDA=ON
libtorch TRUE
printf '#define NCCL_%s\n' 'MAJOR 2' 'MINOR 28' 'PATCH 9' >site/nvidia/nccl/include/nccl.h
nccl ncclCommInitRank
without_cuda 'the NCCL 2\.28\.9 at .*/libnccl\.so\.2 is not the one that LibTorch was built with'
refused 'the NCCL 2\.28\.9 at .*/libnccl\.so\.2 is not the one that LibTorch was built with \(missing in it: ncclCommShrink\)' "set NCCL_ROOT to LibTorch's own" -DHORTATOR_WITH_CUDA=ON
nccl ncclCommInitRank ncclCommShrink
accepted -DHORTATOR_WITH_CUDA=ON
accepted -DHORTATOR_WITH_CUDA=AUTO
output=$(tr -s ' \n' '  ' <<<"$output")
expect_line 'on: .*\* CUDA, toolkit 13\.0, NCCL 2\.28\.9 .*off:|on: .*\* CUDA, toolkit 13\.0, NCCL 2\.28\.9 [^*]*all dependencies'
