# Configures, builds and installs one preset. To be sourced, not executed.
# shellcheck shell=bash disable=SC2034,SC2154  # the files of the set-up share their variables

choose_build() {
  preset=release
  [ "$gpu" = 0 ] || preset=gpu
  build=$root/build/$preset
}

# Whether the build folder has the tests: where they are asked for, or were before.
choose_tests() {
  build_tests=OFF
  if [ "$1" = tests ] || grep -qs '^HORTATOR_BUILD_TESTS:BOOL=ON$' "$build/CMakeCache.txt"; then build_tests=ON; fi
}

# Whether the build has CUDA. In build/gpu it must have; with the downloaded LibTorch it has only there, so that build/release stays the same when
# --gpu or the tests download more of it. With a LibTorch of the user's, CMake decides by what it finds.
choose_cuda() {
  with_cuda=AUTO
  if [ "$gpu" = 1 ]; then with_cuda=ON; elif [ "$(cut -f 2 <<<"$found_libtorch")" = "$libtorch/torch" ]; then with_cuda=OFF; fi
}

# The tests also build for a second MPI, where there is one, and start programs under both.
further_mpi() {
  if [ "$build_tests" = ON ] && [ "${mpi:-openmpi}" = openmpi ] && have_mpich && have_hdf5_mpich; then echo mpich; fi
}

# Prints everything outside the tree that a configuration depends on. While it stays the same, CMake itself detects what has changed.
configuration() {
  echo "$found_libtorch $mpi and $(further_mpi) tests $build_tests CUDA $with_cuda $compiler"
  command -v mpicc cmake || true
  compgen -c clang++- | sort -u || true  # the tests install a clang of their own, possibly after a job has configured the build
  env | grep -E '^(CXXFLAGS|LDFLAGS|CMAKE_PREFIX_PATH|(HDF5|BOOST|MPI|Torch|LIBTORCH|CUDA)(_[A-Z]+)*)=' | sort || true
  cksum "$root/CMakePresets.json"
}

# The number of parallel compilers. One that reads LibTorch's headers takes a gigabyte or more, so memory limits it as well as cores.
build_jobs() {
  local cores memory
  cores=$(cores)
  memory=$(awk '/^MemAvailable/ { print int($2 / 1500000) }' /proc/meminfo)
  echo "${CMAKE_BUILD_PARALLEL_LEVEL:-$((memory < 1 ? 1 : memory < cores ? memory : cores))}"
}

# configure_and_build [TARGET...]: builds these targets, or all.
configure_and_build() {
  local stamp=$build/configured-from now before fresh=()
  now=$(configuration)
  before=$(cat "$stamp" 2>/dev/null) || before=''
  if [ "$before" != "$now" ]; then
    # --fresh drops the results for another compiler or library; the stamp is written last, so that an interrupted configuration is repeated
    if [ -n "$before" ] || [ "${folder_compiler:-$compiler}" != "$compiler" ]; then fresh=(--fresh); fi
    (cd "$root" && CXX=$compiler cmake --preset "$preset" "-DHORTATOR_MPI=$mpi" "-DHORTATOR_WITH_CUDA=$with_cuda" "-DHORTATOR_BUILD_TESTS=$build_tests" "-DHORTATOR_MPI_ALSO=$(further_mpi)" "${fresh[@]}")
    printf '%s\n' "$now" >"$stamp"
  fi
  cmake --build "$build" -j "$(build_jobs)" ${1:+--target "$@"}
}

install_build() {
  if [ -z "$prefix" ]; then return; fi
  cmake --install "$build" --prefix "$prefix" >/dev/null
  log "installed into $prefix. The command hortator: export PATH=$prefix/bin:\$PATH"
}
