#!/usr/bin/env bash
# functions.sh PROGRAM: functions launched on ranks print their results, or the reason of the failure.
set -euo pipefail
program=$1
failed=0

# expect CODE CASE PATTERN...: the program ends with CODE, and exactly one line of its output matches each pattern.
expect() {
  local code=0 output wanted=$1 name=$2
  output=$("$program" "$name" 2>&1) || code=$?
  if [ "$code" != "$wanted" ]; then echo "failed: $name ended with $code: $output"; failed=1; fi
  shift 2
  for pattern in "$@"; do
    if [ "$(grep -acE "$pattern" <<<"$output")" != 1 ]; then echo "failed: $name does not print '$pattern' exactly once: $output"; failed=1; fi
  done
}

expect 0 twice 'sum over 2 is 3$' 'sum over 3 is 6$' 'here the answer is 0$'
expect 9 fails 'rank 1 .*has had enough' 'refused: .*2 ranks ended with exit code 1'
expect 9 in_a_rank 'refused: .*2 ranks ended with exit code 2'
expect 9 none 'refused: .*was to run on 0 ranks'
expect 9 after_mpi 'refused: .*after MPI had started'
exit $failed
