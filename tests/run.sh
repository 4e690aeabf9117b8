#!/usr/bin/env bash
# Installs what is missing, builds, then runs all tests. Ends with ctest's summary and the times, and returns ctest's exit code.
set -euo pipefail
# shellcheck source=share/setup/setup.sh
. "$(dirname "${BASH_SOURCE[0]}")/../share/setup/setup.sh"

usage() {
  echo 'usage: ./tests/run.sh [option...]    runs all tests except the long ones'
  # shellcheck disable=SC2059
  printf "$shared_usage" 'only tests that use at most N ranks'
  echo '  --long         also run the long tests
  --changed      only tests that the changes since the merge base with main can reach

environment: HORTATOR_NO_INSTALL=1 installs and downloads nothing; LIBTORCH names the torch folder of the LibTorch to use'
}
more_flags='--long --changed' long=0 changed=0
parse_options "$@"

began=$SECONDS
set_up tests
built=$SECONDS
if [ "$gpu" = 0 ] && version_at_least 13.0 "$(toolkit_version)"; then
  log 'there is a CUDA toolkit, but the CUDA code is built and tested only with --gpu'
fi

# Containers and test machines run as root, which Open MPI refuses without these variables.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export CLICOLOR_FORCE=0

excluded=() filter=()
if [ "$long" = 0 ]; then excluded+=(long); fi
if [ -n "$ranks" ]; then for n in $(seq $((ranks + 1)) 64); do excluded+=("np$n"); done; fi
if [ ${#excluded[@]} -gt 0 ]; then filter=(-LE "^($(IFS='|'; echo "${excluded[*]}"))\$"); fi
if [ "$changed" = 1 ]; then
  chosen=$(python3 "$root/tests/tools/changed-tests.py" "$root" "$build")
  if [ -z "$chosen" ]; then
    log 'no test can be reached by the changes'
    exit 0
  fi
  filter+=(-R "$chosen")
fi

# Print why GPU tests are skipped: ctest lists skipped tests without the reason.
if [ -x "$build/tests/test_gpu" ]; then
  "$build/tests/test_gpu" 'devices that are there*' 2>/dev/null | sed -n 's/^skipped: /tests with the label gpu will be skipped: /p'
fi

code=0
# one more than there are cores: scripts wait a third of their time, most of it for mpirun
ctest --test-dir "$build" --output-on-failure --no-tests=error -j $(($(cores) + 1)) "${filter[@]}" || code=$?
log "set-up and build took $(duration $((built - began))), the tests $(duration $((SECONDS - built)))"
exit "$code"
