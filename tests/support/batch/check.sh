#!/usr/bin/env bash
# check.sh BATCH PROGRAM LAUNCHER...: batch.sh runs every case whatever the ones before it did, and reports all that fail, and only these.
set -euo pipefail

batch=$1 program=$2
shift 2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

code=0
HORTATOR_TEST_CASE_LIMIT=2 "$batch" log "$program" '[.fault]' "$@" >output 2>&1 || code=$?
fail() { cat output; echo "check.sh: $1"; exit 1; }
[ "$code" = 1 ] || fail "expected exit code 1, got $code"
grep -q '^batch: 3 cases passed, 7 failed$' output || fail 'expected 3 cases that pass and 7 that fail'
while read -r name; do
  grep -qxF "failed: $name" output || fail "not reported: $name"
done <<'NAMES'
a check fails on one rank
a requirement fails on one rank
one rank waits for ever
the program exits
a descriptor stays open
a thread stays
a message stays
NAMES
grep -q "'a descriptor stays open' leaves behind: descriptor" output || fail 'the descriptor is not named'
grep -q "'a thread stays' leaves behind: thread" output || fail 'the thread is not named'
grep -q "'a message stays' leaves behind: a message" output || fail 'the message is not named'
! "$batch" log "$program" '[no_such_tag]' "$@" >output 2>&1 || fail 'a filter that selects nothing passed'
echo 'batch.sh reports what fails, and runs the rest'
