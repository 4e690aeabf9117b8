#!/usr/bin/env bash
# Sets everything up, then runs every test. The last thing printed is ctest's summary, and its exit code is ours.
set -euo pipefail
# shellcheck source=share/setup/setup.sh
. "$(dirname "${BASH_SOURCE[0]}")/../share/setup/setup.sh"

usage() {
  echo 'usage: ./tests/run.sh [option...]    all tests, except those that take long'
  # shellcheck disable=SC2059
  printf "$shared_usage" 'only tests that use at most N ranks'
  echo '  --long         the tests that take long, too

environment: HORTATOR_NO_INSTALL=1 never installs nor downloads; LIBTORCH names the torch folder of a LibTorch to use'
}
more_flags=--long long=0
parse_options "$@"

set_up tests

# Root is what containers and test machines run as; Open MPI asks whether that is meant.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export CLICOLOR_FORCE=0

excluded=()
if [ "$long" = 0 ]; then excluded+=(long); fi
if [ -n "$ranks" ]; then for n in $(seq $((ranks + 1)) 64); do excluded+=("np$n"); done; fi
filter=()
if [ ${#excluded[@]} -gt 0 ]; then filter=(-LE "^($(IFS='|'; echo "${excluded[*]}"))\$"); fi

# ctest lists what is skipped, without the reason.
if [ -x "$build/tests/test_gpu" ]; then
  "$build/tests/test_gpu" 'devices that are there*' 2>/dev/null | sed -n 's/^skipped: /tests with the label gpu will be skipped: /p'
fi

exec ctest --test-dir "$build" --output-on-failure --no-tests=error -j "$(cores)" "${filter[@]}"
