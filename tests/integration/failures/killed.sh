#!/usr/bin/env bash
# killed.sh RANK COMMAND...: a job one of whose ranks is killed in the middle ends within five seconds and not well; what is killed says
# nothing, the launcher names RANK. Nothing of ours is left. (Hydra ends the others and names any of them: there only that one was killed counts.)
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
[ $code -ne 0 ] || complain 'it ended well'
killed=$(sed -n 's/^failing at //p' output | sort -n | tail -n 1)
[ -n "$killed" ] || complain 'it did not come so far'
took=$(((end - killed) / 1000))
[ $took -lt 5000 ] || complain "the job went on for $took ms"
witness="rank $rank .*(signal 9|PID)"
if grep -q HYDRA <<<"$("$1" --version 2>&1)"; then witness='EXIT CODE: 9'; fi
grep -Eiq "$witness" output || complain "nobody names rank $rank"
left=$(leftovers)
[ -z "$left" ] || complain "left behind: $left"
