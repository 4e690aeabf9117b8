#!/usr/bin/env bash
# every_kill.sh SHIM RANKS COMMAND...: each rank in turn is killed at each of its calls that change a checkpoint's files, within a
# save that replaces another. The next run finds the older version or the newer one, whole.
set -uo pipefail
shim=$1 ranks=$2
shift 2
# shellcheck source=tests/integration/saving/support.sh
. "$(dirname "${BASH_SOURCE[0]}")/support.sh"

timeout 60 "$@" 1 >output 2>&1 || fail 'it does not run'
newest=1
total=0
for ((rank = 0; rank < ranks; ++rank)); do
  for ((at = 1; ; ++at)); do
    timeout 60 env FAULT_PATH="$work/run/checkpoint" FAULT_RANK="$rank" FAULT_KIND=kill FAULT_AT="$at" LD_PRELOAD="$shim" "$@" 1 >output 2>&1
    code=$?
    [ $code -ne 124 ] || fail "the kill of rank $rank at call $at left the others waiting"
    found=$(sed -n 's/^loaded //p' output)
    [ "$found" = "$newest" ] || [ "$found" = $((newest + 1)) ] || fail "before the kill of rank $rank at call $at the run found '$found', after $newest"
    newest=$found
    [ $code -ne 0 ] || break
    total=$((total + 1))
  done
  newest=$((newest + 1)) # which that run has saved
  [ "$at" -gt 4 ] || fail "rank $rank has hardly any call at which to kill it"
done
timeout 60 "$@" 0 >output 2>&1 || fail 'what is left does not load'
echo "$total kills; version $(sed -n 's/^loaded //p' output)"
