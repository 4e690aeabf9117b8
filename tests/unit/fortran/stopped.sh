#!/usr/bin/env bash
# stopped.sh RANKS COMMAND...: a failure without `status` ends the job, with one line that names the rank and its host, and no advice about C++.
set -uo pipefail
ranks=$1
shift
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
fail() {
  echo "failed: $1" >&2
  cat output >&2
  exit 1
}
"$@" >output 2>&1 && fail 'the program ends as if all were well'
line="^hortator: rank $((ranks - 1)) \([^)]+\): hortator_batch_add got the unknown role 77"
[ "$(grep -cE "$line" output)" -eq 1 ] || fail 'the failure is not reported in one line, with its rank and host'
grep -q 'left by exit' output && fail 'the exit is reported as a failure of its own'
grep -q 'unknown role 77' run_stopped/failure.json || fail 'failure.json does not have the failure'
exit 0
