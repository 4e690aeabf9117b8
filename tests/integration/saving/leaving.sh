#!/usr/bin/env bash
# leaving.sh SHIM RANKS COMMAND...: what becomes of a save beside the program when its disk does not answer or fails. The program goes
# on; one that fails ends within two seconds all the same; one whose last save failed does not end well. Each time the checkpoint
# before it is whole.
set -uo pipefail
shim=$1 ranks=$2
shift 2
# shellcheck source=tests/integration/saving/support.sh
. "$(dirname "${BASH_SOURCE[0]}")/support.sh"
last=$((ranks - 1))

# run KIND RANK WORDS...: that rank's disk does so at its call number $at, of which the fourth is its thread's
run() {
  local kind=$1 rank=$2
  shift 2
  timeout 60 env FAULT_PATH="$work/run/second" FAULT_KIND="$kind" FAULT_RANK="$rank" FAULT_AT="$at" FAULT_SECONDS="$seconds" LD_PRELOAD="$shim" "${command[@]}" "$@" >output 2>&1
  code=$?
  ended=$(date +%s%3N)
}
told() { sed -n "s/^rank $1 $2 at //p" output; }
check_older() {
  "${command[@]}" load >load_output 2>&1 || fail "$1: the older checkpoint does not load"
  grep -q '^loaded 1$' load_output || fail "$1: the older checkpoint is another"
}
command=("$@")
at=4

seconds=3
run delay "$last" train
[ $code -eq 0 ] || fail "a slow disk ended the run with $code"
for ((rank = 0; rank < ranks; ++rank)); do
  [ $(($(told $rank 'has worked') - $(told $rank saves))) -lt 2500 ] || fail "rank $rank waited for a disk before its next save"
  [ $(($(told $rank 'has waited') - $(told $rank saves))) -ge 3000 ] || fail "rank $rank did not wait for the disk, or the disk was not slow"
done
check_older 'after a slow disk'

seconds=100000
for guilty in $(seq 0 "$last"); do
  run delay "$guilty" throw "$guilty"
  if [ $code -eq 0 ] || [ $code -eq 124 ]; then fail "rank $guilty threw while its disk did not answer: the job ended with $code"; fi
  [ $((ended - $(told "$guilty" 'goes on'))) -lt 2000 ] || fail "rank $guilty threw while its disk did not answer: that took $((ended - $(told "$guilty" 'goes on'))) ms"
  grep -q "^hortator: rank $guilty (.*the program's own reason" output || fail "nothing says why rank $guilty ended the job"
  check_older 'after an exception'
done

at=1000000
run EIO "$last" end
[ $code -eq 0 ] || fail "a save that nobody waits for ended the run with $code"
at=4
run EIO "$last" end
[ $code -eq 1 ] || fail "a run whose last save failed ended with $code"
grep -q "^hortator: rank $last (.*Input/output error" output || fail 'nothing says that the last save failed'
grep -q 'Input/output error' run/failure.json || fail 'failure.json does not say that the last save failed'
[ ! -e run/outcome.json ] || fail 'a run whose last save failed calls itself finished'
check_older 'after a failed save'
