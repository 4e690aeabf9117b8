#!/usr/bin/env bash
# killed.sh RANK COMMAND...: a job with a rank that is killed ends within five seconds and fails; the launcher reports RANK, and nothing is left
# behind. (Hydra reports any of the ranks that it then ends, so with it only the fact of a kill is checked.)
set -uo pipefail
here=$(dirname "${BASH_SOURCE[0]}")
# shellcheck source=tests/integration/failures/leftovers.sh
. "$here/leftovers.sh"
rank=$1
shift
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
witness="rank $rank .*(signal 9|PID)"
if grep -q HYDRA <<<"$("$1" --version 2>&1)"; then witness='EXIT CODE: 9'; fi
grep -Eiq "$witness" output || complain "rank $rank is not reported"
left=$(leftovers)
[ -z "$left" ] || complain "left behind: $left"
