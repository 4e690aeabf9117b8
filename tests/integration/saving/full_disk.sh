#!/usr/bin/env bash
# full_disk.sh SHIM RANKS "KINDS" "CALLS" COMMAND...: the disk of the first or the last rank fails with each of KINDS at each of CALLS. Either
# all ranks throw the same error within five seconds or none does; the run continues, its next save succeeds, and the checkpoint is loaded. One run
# has all faults of a rank, one after the other.
set -uo pipefail
shim=$1 ranks=$2 kinds=$3 calls=$4
shift 4
# shellcheck source=tests/integration/saving/support.sh
. "$(dirname "${BASH_SOURCE[0]}")/support.sh"
export FAULT_PATH=$work/run/checkpoint

series=''
for kind in $kinds; do
  for at in $calls; do series+="${series:+ }$kind@$at"; done
done

"$@" 1 >output 2>&1 || fail 'the first run fails'
thrown=0
for rank in 0 $((ranks - 1)); do
  FAULT_RANK=$rank FAULT_SERIES=$series LD_PRELOAD=$shim "$@" faults >output 2>&1 || fail "a fault on rank $rank ended the run"
  grep -q '^loaded' output || fail 'the checkpoint of the run before was not found'
  for fault in $series; do
    sed -n "s/^$fault //p" output >lines
    mapfile -t problems < <(sed -n 's/^rank [0-9]* after [0-9.]* s: //p' lines | sort -u)
    throwing=$(grep -c '^rank [0-9]* after' lines)
    [ "$throwing" -eq 0 ] || [ "$throwing" -eq "$ranks" ] || fail "$fault on rank $rank: $throwing of $ranks ranks threw"
    [ ${#problems[@]} -le 1 ] || fail "$fault on rank $rank: ranks threw different errors"
    grep -qE '^rank [0-9]* after ([5-9]|[0-9]{2,})[.]' lines && fail "$fault on rank $rank: the error took 5 s or more"
    [ "$throwing" -eq 0 ] || thrown=$((thrown + 1))
    grep -q '^saved' lines || fail "no save succeeded after $fault on rank $rank"
    grep -q '^loaded' lines || fail "the checkpoint after $fault on rank $rank was not loaded"
  done
done
"$@" 0 >output 2>&1 || fail 'the last checkpoint does not load'
grep -q '^loaded' output || fail 'the last checkpoint was not found'
echo "$thrown faults were thrown, on all ranks"
[ "$thrown" -gt 2 ] || fail 'fewer than 3 faults were thrown'
