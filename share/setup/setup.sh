#!/usr/bin/env bash
# The whole set-up: system packages, LibTorch, build. The commands source this file and call set_up; executed, it does the same.
set -euo pipefail

# shellcheck source=share/setup/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
# shellcheck source=share/setup/options.sh
. "$root/share/setup/options.sh"
# shellcheck source=share/setup/packages.sh
. "$root/share/setup/packages.sh"
# shellcheck source=share/setup/libtorch.sh
. "$root/share/setup/libtorch.sh"
# shellcheck source=share/setup/model_packages.sh
. "$root/share/setup/model_packages.sh"
# shellcheck source=share/setup/build.sh
. "$root/share/setup/build.sh"

# Selects one of the distribution's MPIs.
choose_mpi() {
  mpi=${HORTATOR_MPI:-}
  case $mpi in
    '' | openmpi) ;;
    mpich) required=("${required[@]/#mpi/mpich}") required=("${required[@]/#hdf5/hdf5_mpich}") ;;
    *) fail "HORTATOR_MPI: expected openmpi, mpich or nothing, got '$mpi'" ;;
  esac
}

# set_up [tests|TARGET...]: installs, configures and builds: all, these targets, or what is installed and one example. Afterwards the
# programs are in $build/bin.
set_up() {
  local required=(compiler cmake ninja mpi hdf5 boost json yaml)
  choose_mpi
  choose_build
  choose_tests "${1:-}"
  if [ "$build_tests" = ON ]; then required+=(catch2); fi
  choose_wheels "${1:-}"
  if [ "$clean" = 1 ]; then rm -rf "$build"; fi
  if [ -n "$prefix" ]; then mkdir -p "$prefix" || fail "--prefix: cannot create the folder '$prefix'. Name one that you may write"; fi
  look_for_libtorch
  if [ -z "$found_libtorch" ]; then required+=(download); fi
  if [ "$gpu" = 1 ]; then required+=(cuda); fi
  ensure_packages "${required[@]}"
  if [[ $found_libtorch != *$'\t'* ]]; then look_for_libtorch; fi
  if [ "${1:-}" = tests ]; then ensure_test_packages; fetch_model_packages; fi
  if [ -z "$found_libtorch" ] && [ -n "${HORTATOR_NO_INSTALL:-}" ]; then stop_for '' libtorch; fi
  ensure_libtorch
  if [ "${only_deps:-0}" = 1 ]; then return; fi
  # without the tests and most examples, which take most of the build time
  local targets=(src/all share/bench/all gpt)
  if [ "${1:-}" = tests ]; then targets=(); elif [ $# -gt 0 ] && [ -z "$prefix" ]; then targets=("$@"); fi
  configure_and_build "${targets[@]}"
}

if [ "${BASH_SOURCE[0]}" = "$0" ]; then
  usage() {
    echo "usage: share/setup/setup.sh [option...]    set-up only, e.g. on a cluster's login node"
    # shellcheck disable=SC2059
    printf "$shared_usage" 'has no effect here'
    echo '  --tests        also install what only the tests need'
    echo '  --only-deps    packages and LibTorch only, no build'
  }
  more_flags='--tests --only-deps' tests=0 only_deps=0
  parse_options "$@"
  if [ "$tests" = 1 ]; then set_up tests; else set_up; fi
fi
