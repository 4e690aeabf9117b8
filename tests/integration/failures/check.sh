#!/usr/bin/env bash
# check.sh PROGRAM ENDING RANK PROBLEM COMMAND...: runs COMMAND PROGRAM ENDING (a launcher with its options), which must fail, and checks
# the guarantees of hortator::run: a nonzero exit code; exactly one line of Hortator for the whole job, by a rank that RANK (a regular
# expression) matches; the end within two seconds; the same facts in failure.json; no processes and no files in /dev/shm left behind.
# FOLDER: where failure.json must be. ARRANGE: a command that prepares the working folder. WRITABLE=0: nothing can be written there.
# LIMIT: seconds instead of two. CODE: the exit code (a regular expression), also in failure.json.
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

# Open MPI 4's mpirun sometimes crashes or hangs when a job is aborted, after Hortator's line and the end of all ranks: then the run is
# repeated.
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
tr -d '\000' <raw >output  # the mpirun of Open MPI 5 ends its messages with a zero byte, which is then at the start of Hortator's line

[[ $code =~ ^${CODE:-[1-9][0-9]*}$ ]] || complain "the job's exit code is $code"
left=$(leftovers)
[ -z "$left" ] || complain "left behind: $left"

count=$(grep -c '^hortator: rank' output)
[ "$count" -eq 1 ] || complain "expected 1 line of Hortator, got $count"
line=$(grep '^hortator: rank' output)
[[ $line =~ ^hortator:\ rank\ $rank\ \([^\)]+\):\ $problem$ ]] || complain "unexpected line: $line"

failed=$(sed -n 's/^failing at //p' output | sort -n | tail -n 1)
if [ -n "$failed" ]; then
  took=$(((end - failed) / 1000))
  echo "ended after $took ms"
  [ "$took" -lt $((limit * 1000)) ] || complain "the job ended only after $took ms"
fi

record=${FOLDER:-runs/$(basename "$program")}/failure.json
if [ "${WRITABLE:-1}" = 0 ]; then
  [ ! -e "$record" ] || complain "$record was written although the folder is not writable"
  exit 0
fi
[ -s "$record" ] || complain "$record is missing"
for field in '"run_id": "[0-9]' '"rank": '"$rank" '"host": "[a-z0-9]' '"pid": [0-9]' '"where": ' '"time": "20' '"hortator": "'; do
  grep -q "^  $field" "$record" || complain "$field is missing in $(cat "$record")"
done
if [ -n "${CODE:-}" ]; then grep -Eq "\"exit_code\": $CODE," "$record" || complain "expected exit_code $CODE: $(cat "$record")"; fi
if [ -n "${WHERE:-}" ]; then grep -q "\"where\": \"$WHERE\"" "$record" || complain "expected where $WHERE: $(cat "$record")"; fi
recorded=$(sed -n 's/^  "problem": "\(.*\)",$/\1/p' "$record")
[[ $recorded =~ ^${RECORDED:-$problem}$ ]] || complain "unexpected problem in $record: $recorded"
[ "$(find . -path '*/status/*' -o \( -name '*.json*' -o -name '.stall*' -o -path './scratch/*' \) -print | wc -l)" -eq 1 ] || complain "files are left behind: $(find . -type f)"
