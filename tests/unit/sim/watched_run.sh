#!/usr/bin/env bash
# watched_run.sh PROGRAM COMMAND...: runs COMMAND PROGRAM MODE (a launcher with its options) under HORTATOR_DEBUG_STREAMS=1. Training on the
# device is not reported, a planted race is, with both operators and both places, and ends the run with exit code 1; on the CPU nothing is watched.
set -uo pipefail
program=$1
shift
name=$(basename "$program")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1

complain() {
  echo "failed: $1" >&2
  cat output >&2
  exit 1
}

run() {
  HORTATOR_DEBUG_STREAMS=1 timeout -s KILL 60 "$@" >output 2>&1
  code=$?
}

run "$@" "$program" clean
[ "$code" -eq 0 ] || complain "clean training ends with $code"
grep -q HORTATOR_DEBUG_STREAMS output && complain "clean training is reported"

run "$@" "$program" planted
[ "$code" -eq 1 ] || complain "a planted race ends with $code instead of 1"
place="called at $name\+0x[0-9a-f]+ \("
race="'aten::[a-z_]+' on stream [0-9]+ of sim:[0-9], ${place}[^)]*double_on_side_stream.*, is not ordered after "
race+="'aten::fill_' on stream [0-9]+ of sim:[0-9], ${place}[^)]*fill_on_own_stream"
grep -qE "warning: HORTATOR_DEBUG_STREAMS: (Two writes|Read of a write): $race" output || complain "the planted race is not logged"
grep -qE "^hortator: rank [0-9]+ \([^)]*\): Work on the device is not in order\. .*$race" output || complain "the run does not end with the race as its error"
grep -q "not in order" "runs/$name/failure.json" || complain "failure.json does not name the race"

run "$@" "$program" cpu
[ "$code" -eq 0 ] || complain "training on the CPU ends with $code"
[ "$(grep -c 'HORTATOR_DEBUG_STREAMS: nothing is watched' output)" -eq 1 ] || complain "it is not logged that nothing is watched"

# Every report is one of the planted race.
run "$@" "$program" planted
others=$(grep HORTATOR_DEBUG_STREAMS: output | grep -v double_on_side_stream)
[ -z "$others" ] || complain "something else is reported as well: $others"
