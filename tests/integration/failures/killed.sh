#!/usr/bin/env bash
# killed.sh RANK CODE PROBLEM COMMAND...: a job with a rank that is killed ends within five seconds and fails; one of the other ranks reports RANK
# with PROBLEM, once, on standard error and in failure.json with the exit code CODE, and nothing is left behind. (Hydra reports any of the ranks that
# it then ends, and gives them no time, so with it only the fact of a kill is checked.)
set -uo pipefail
here=$(dirname "${BASH_SOURCE[0]}")
# shellcheck source=tests/integration/failures/leftovers.sh
. "$here/leftovers.sh"
rank=$1 expected=$2 problem=$3
shift 3
mark_processes
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1

complain() {
  echo "failed: $1" >&2
  cat output >&2
  exit 1
}

timeout -s KILL 20 "$@" >raw 2>&1
code=$?
end=${EPOCHREALTIME/[.,]/}
tr -d '\000' <raw >output
[ $code -ne 0 ] || complain 'the job succeeded'
killed=$(sed -n 's/^failing at //p' output | sort -n | tail -n 1)
[ -n "$killed" ] || complain 'the job ended before the kill'
took=$(((end - killed) / 1000))
[ $took -lt 5000 ] || complain "the job ended only after $took ms"
if grep -q HYDRA <<<"$("$1" --version 2>&1)"; then
  grep -q 'EXIT CODE: 9' output || complain 'the kill is not reported'
else
  [ "$(grep -c '^hortator: rank' output)" -eq 1 ] || complain 'expected one line of Hortator'
  grep -qE "^hortator: rank $rank \([^)]+\): $problem" output || complain "rank $rank is not reported"
  for field in "\"rank\": $rank," '"host": "[a-z0-9]' "\"exit_code\": $expected," "\"problem\": \"$problem"; do
    grep -qE "^  $field" runs/stalling/failure.json || complain "$field is missing in $(cat runs/stalling/failure.json)"
  done
fi
left=$(leftovers)
[ -z "$left" ] || complain "left behind: $left"
