#!/usr/bin/env bash
# every_kill.sh SHIM RANKS COMMAND...: kills each rank at each of its calls that change files of a checkpoint, during a save that replaces
# another one. The next run finds the older or the newer version, complete.
set -uo pipefail
shim=$1 ranks=$2
shift 2
# shellcheck source=tests/integration/saving/support.sh
. "$(dirname "${BASH_SOURCE[0]}")/support.sh"

timeout 60 "$@" 1 >output 2>&1 || fail 'the first run fails'
newest=1
total=0
for ((rank = 0; rank < ranks; ++rank)); do
  for ((at = 1; ; ++at)); do
    timeout 60 env FAULT_PATH="$work/run/checkpoint" FAULT_RANK="$rank" FAULT_KIND=kill FAULT_AT="$at" LD_PRELOAD="$shim" "$@" 1 >output 2>&1
    code=$?
    [ $code -ne 124 ] || fail "the kill of rank $rank at call $at left the other ranks waiting"
    found=$(sed -n 's/^loaded //p' output)
    [ "$found" = "$newest" ] || [ "$found" = $((newest + 1)) ] || fail "before the kill of rank $rank at call $at the run found '$found', after $newest"
    newest=$found
    [ $code -ne 0 ] || break
    total=$((total + 1))
  done
  newest=$((newest + 1)) # this run was not killed and has saved
  [ "$at" -gt 4 ] || fail "rank $rank was killed at fewer than 4 calls"
done
timeout 60 "$@" 0 >output 2>&1 || fail 'the last checkpoint does not load'
echo "$total kills; version $(sed -n 's/^loaded //p' output)"
