#!/usr/bin/env bash
# full_disk.sh SHIM RANKS COMMAND...: one rank's disk fails at each of its calls in turn. All ranks throw the same error within
# five seconds or none does, the run goes on, and its next save works.
set -uo pipefail
shim=$1 ranks=$2
shift 2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
export FAULT_PATH=$work/run/checkpoint FAULT_RANK=$((ranks - 1))

fail() {
  echo "failed: $1" >&2
  cat output >&2
  exit 1
}

"$@" 1 >output 2>&1 || fail 'it does not run'
thrown=0
for kind in ENOSPC EIO; do
  for at in 1 2 3 4 6 8 12; do
    FAULT_KIND=$kind FAULT_AT=$at LD_PRELOAD=$shim "$@" 2 >output 2>&1 || fail "$kind at $at ended the run"
    mapfile -t problems < <(sed -n 's/^rank [0-9]* after [0-9.]* s: //p' output | sort -u)
    told=$(grep -c '^rank [0-9]* after' output)
    [ "$told" -eq 0 ] || [ "$told" -eq "$ranks" ] || fail "$kind at $at was thrown on $told of $ranks ranks"
    [ ${#problems[@]} -le 1 ] || fail "$kind at $at gave ranks different errors"
    grep -qE '^rank [0-9]* after ([5-9]|[0-9]{2,})[.]' output && fail "$kind at $at took too long"
    [ "$told" -eq 0 ] || thrown=$((thrown + 1))
    grep -q '^saved' output || fail "after $kind at $at no save worked"
    "$@" 0 >output 2>&1 || fail "what $kind at $at has left does not load"
  done
done
echo "$thrown faults were thrown, on all ranks"
[ "$thrown" -gt 2 ] || fail 'hardly any fault was thrown'
