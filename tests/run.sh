#!/usr/bin/env bash
# Installs what is missing, builds, then runs all tests. Ends with ctest's summary and returns ctest's exit code.
set -euo pipefail
# shellcheck source=share/setup/setup.sh
. "$(dirname "${BASH_SOURCE[0]}")/../share/setup/setup.sh"

usage() {
  echo 'usage: ./tests/run.sh [option...]    runs all tests except the long ones'
  # shellcheck disable=SC2059
  printf "$shared_usage" 'only tests that use at most N ranks'
  echo '  --long         also run the long tests

environment: HORTATOR_NO_INSTALL=1 installs and downloads nothing; LIBTORCH names the torch folder of the LibTorch to use'
}
more_flags=--long long=0
parse_options "$@"

set_up tests

# Containers and test machines run as root, which Open MPI refuses without these variables.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export CLICOLOR_FORCE=0

excluded=()
if [ "$long" = 0 ]; then excluded+=(long); fi
if [ -n "$ranks" ]; then for n in $(seq $((ranks + 1)) 64); do excluded+=("np$n"); done; fi
filter=()
if [ ${#excluded[@]} -gt 0 ]; then filter=(-LE "^($(IFS='|'; echo "${excluded[*]}"))\$"); fi

# Print why GPU tests are skipped: ctest lists skipped tests without the reason.
if [ -x "$build/tests/test_gpu" ]; then
  "$build/tests/test_gpu" 'devices that are there*' 2>/dev/null | sed -n 's/^skipped: /tests with the label gpu will be skipped: /p'
fi

exec ctest --test-dir "$build" --output-on-failure --no-tests=error -j "$(cores)" "${filter[@]}"
