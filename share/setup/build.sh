# Configures, builds and installs one preset. Sourced, never run.
# shellcheck shell=bash disable=SC2034,SC2154  # one program in several files: the names of one are used in others

choose_build() {
  preset=release
  [ "$gpu" = 0 ] || preset=gpu
  build=$root/build/$preset
}

# Everything outside the tree that a configuration was made from: while it stays the same, CMake itself sees what changed.
configuration() {
  echo "$found_libtorch $mpi"
  ls "$libtorch/nvidia" 2>/dev/null || true  # with NCCL there, the CUDA side can be built
  command -v "${CXX:-g++}" mpicc cmake || true
  compgen -c clang++- | sort -u || true  # the tests' own compiler comes with them, after a job's configuration
  env | grep -E '^(CXX|CXXFLAGS|LDFLAGS|CMAKE_PREFIX_PATH|(HDF5|BOOST|MPI|Torch|LIBTORCH|CUDA)(_[A-Z]+)*)=' | sort || true
  cksum "$root/CMakePresets.json"
}

# Compilers of LibTorch's headers take a gigabyte and more: memory bounds their number as cores do.
build_jobs() {
  local cores memory
  cores=$(cores)
  memory=$(awk '/^MemAvailable/ { print int($2 / 1500000) }' /proc/meminfo)
  echo "${CMAKE_BUILD_PARALLEL_LEVEL:-$((memory < 1 ? 1 : memory < cores ? memory : cores))}"
}

# configure_and_build TARGET...: all that there is, where none is named.
configure_and_build() {
  local stamp=$build/configured-from now before fresh=()
  now=$(configuration)
  before=$(cat "$stamp" 2>/dev/null) || before=''
  if [ "$before" != "$now" ]; then
    # what CMake remembers of another compiler or library must go; the stamp comes last: an interrupted configuration is made again
    if [ -n "$before" ]; then fresh=(--fresh); fi
    (cd "$root" && cmake --preset "$preset" "-DHORTATOR_MPI=$mpi" "${fresh[@]}")
    printf '%s\n' "$now" >"$stamp"
  fi
  cmake --build "$build" -j "$(build_jobs)" ${1:+--target "$@"}
  [ -z "$prefix" ] || { cmake --install "$build" --prefix "$prefix" >/dev/null; say "installed into $prefix"; }
}
