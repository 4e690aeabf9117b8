#!/usr/bin/env bash
# check.sh PROGRAM ENDING RANK PROBLEM COMMAND...: runs COMMAND PROGRAM ENDING (a launcher with its options), which has to fail, and
# checks the promise of hortator::run: a code other than 0, one line of ours for the whole job, by a rank that RANK (a regular
# expression) matches, over within two seconds, and the same facts in failure.json. FOLDER: where failure.json has to be.
# ARRANGE: a command that prepares the working folder. WRITABLE=0: nothing can be written there. LIMIT: seconds in place of two.
# CODE: the exit code (a regular expression), also in failure.json. Nothing of ours may be left in /dev/shm, nor any process.
set -uo pipefail
here=$(dirname "${BASH_SOURCE[0]}")
# shellcheck source=tests/integration/failures/leftovers.sh
. "$here/leftovers.sh"
program=$1 ending=$2 rank=$3 problem=$4
shift 4
limit=${LIMIT:-2}
mark_processes

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
eval "${ARRANGE:-}"

complain() {
  echo "failed: $1" >&2
  echo "--- output of: $ending" >&2
  cat output >&2
  exit 1
}

# Open MPI 4's mpirun now and then crashes or hangs when a job is aborted, after our line and with all ranks gone: the drill is repeated.
launcher_failed() {
  [ "$code" = 137 ] || [ "$code" = 139 ] || return 1
  grep -aq 'hortator: rank' raw || return 1
  ! pgrep -x "$(basename "$program" | cut -c1-15)" >/dev/null
}
for attempt in 1 2; do
  timeout -s KILL 20 "$@" "$program" "$ending" >raw 2>&1
  code=$?
  if ! launcher_failed; then break; fi
  echo "attempt $attempt: the launcher itself ended with $code"
done
end=${EPOCHREALTIME/[.,]/}
tr -d '\000' <raw >output  # the mpirun of Open MPI 5 ends its own words with a zero byte, which then begins our line

[[ $code =~ ^${CODE:-[1-9][0-9]*}$ ]] || complain "the job's exit code is $code"
left=$(leftovers)
[ -z "$left" ] || complain "left behind: $left"

said=$(grep -c '^hortator: rank' output)
[ "$said" -eq 1 ] || complain "$said lines instead of one"
line=$(grep '^hortator: rank' output)
[[ $line =~ ^hortator:\ rank\ $rank\ \([^\)]+\):\ $problem$ ]] || complain "not what was expected: $line"

failed=$(sed -n 's/^failing at //p' output | sort -n | tail -n 1)
if [ -n "$failed" ]; then
  took=$(((end - failed) / 1000))
  echo "over after $took ms"
  [ "$took" -lt $((limit * 1000)) ] || complain "the job went on for $took ms"
fi

record=${FOLDER:-runs/$(basename "$program")}/failure.json
if [ "${WRITABLE:-1}" = 0 ]; then
  [ ! -e "$record" ] || complain "$record was written all the same"
  exit 0
fi
[ -s "$record" ] || complain "there is no $record"
for field in '"run_id": "[0-9]' '"rank": '"$rank" '"host": "[a-z0-9]' '"pid": [0-9]' '"where": ' '"time": "20' '"hortator": "'; do
  grep -q "^  $field" "$record" || complain "$field is missing in $(cat "$record")"
done
if [ -n "${CODE:-}" ]; then grep -Eq "\"exit_code\": $CODE," "$record" || complain "not the code $CODE: $(cat "$record")"; fi
if [ -n "${WHERE:-}" ]; then grep -q "\"where\": \"$WHERE\"" "$record" || complain "not at $WHERE: $(cat "$record")"; fi
recorded=$(sed -n 's/^  "problem": "\(.*\)",$/\1/p' "$record")
[[ $recorded =~ ^${RECORDED:-$problem}$ ]] || complain "the record says: $recorded"
[ "$(find . -path '*/status/*' -o \( -name '*.json*' -o -name '.stall*' -o -path './scratch/*' \) -print | wc -l)" -eq 1 ] || complain "files are left over: $(find . -type f)"
