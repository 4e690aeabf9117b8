#!/usr/bin/env bash
# full_disk.sh SHIM RANKS "KINDS" "CALLS" COMMAND...: the disk of the first or the last rank fails in each of these ways at each of these of its
# calls. All ranks throw the same error within five seconds or none does, the run goes on, its next save works, and the run after it
# finds what it has left.
set -uo pipefail
shim=$1 ranks=$2 kinds=$3 calls=$4
shift 4
# shellcheck source=tests/integration/saving/support.sh
. "$(dirname "${BASH_SOURCE[0]}")/support.sh"
export FAULT_PATH=$work/run/checkpoint

"$@" 1 >output 2>&1 || fail 'it does not run'
thrown=0
before='the first save'
for rank in 0 $((ranks - 1)); do
  for kind in $kinds; do
    for at in $calls; do
      fault="$kind on rank $rank at $at"
      FAULT_RANK=$rank FAULT_KIND=$kind FAULT_AT=$at LD_PRELOAD=$shim "$@" 2 >output 2>&1 || fail "$fault ended the run"
      grep -q '^loaded' output || fail "what $before has left was not found"
      mapfile -t problems < <(sed -n 's/^rank [0-9]* after [0-9.]* s: //p' output | sort -u)
      told=$(grep -c '^rank [0-9]* after' output)
      [ "$told" -eq 0 ] || [ "$told" -eq "$ranks" ] || fail "$fault was thrown on $told of $ranks ranks"
      [ ${#problems[@]} -le 1 ] || fail "$fault gave ranks different errors"
      grep -qE '^rank [0-9]* after ([5-9]|[0-9]{2,})[.]' output && fail "$fault took too long"
      [ "$told" -eq 0 ] || thrown=$((thrown + 1))
      grep -q '^saved' output || fail "after $fault no save worked"
      before=$fault
    done
  done
done
"$@" 0 >output 2>&1 || fail "what $before has left does not load"
echo "$thrown faults were thrown, on all ranks"
[ "$thrown" -gt 2 ] || fail 'hardly any fault was thrown'
