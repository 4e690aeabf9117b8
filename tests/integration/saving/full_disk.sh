#!/usr/bin/env bash
# full_disk.sh SHIM RANKS "KINDS" "CALLS" COMMAND...: the disk of the first or the last rank fails with each of KINDS at each of CALLS. Either
# all ranks throw the same error within five seconds or none does; the run continues, its next save succeeds, and the next run loads the
# checkpoint.
set -uo pipefail
shim=$1 ranks=$2 kinds=$3 calls=$4
shift 4
# shellcheck source=tests/integration/saving/support.sh
. "$(dirname "${BASH_SOURCE[0]}")/support.sh"
export FAULT_PATH=$work/run/checkpoint

"$@" 1 >output 2>&1 || fail 'the first run fails'
thrown=0
before='the first save'
for rank in 0 $((ranks - 1)); do
  for kind in $kinds; do
    for at in $calls; do
      fault="$kind on rank $rank at $at"
      FAULT_RANK=$rank FAULT_KIND=$kind FAULT_AT=$at LD_PRELOAD=$shim "$@" 2 >output 2>&1 || fail "$fault ended the run"
      grep -q '^loaded' output || fail "the checkpoint after '$before' was not found"
      mapfile -t problems < <(sed -n 's/^rank [0-9]* after [0-9.]* s: //p' output | sort -u)
      throwing=$(grep -c '^rank [0-9]* after' output)
      [ "$throwing" -eq 0 ] || [ "$throwing" -eq "$ranks" ] || fail "$fault: $throwing of $ranks ranks threw"
      [ ${#problems[@]} -le 1 ] || fail "$fault: ranks threw different errors"
      grep -qE '^rank [0-9]* after ([5-9]|[0-9]{2,})[.]' output && fail "$fault: the error took 5 s or more"
      [ "$throwing" -eq 0 ] || thrown=$((thrown + 1))
      grep -q '^saved' output || fail "no save succeeded after $fault"
      before=$fault
    done
  done
done
"$@" 0 >output 2>&1 || fail "the checkpoint after '$before' does not load"
echo "$thrown faults were thrown, on all ranks"
[ "$thrown" -gt 2 ] || fail 'fewer than 3 faults were thrown'
