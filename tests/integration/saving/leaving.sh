#!/usr/bin/env bash
# leaving.sh SHIM RANKS COMMAND...: an asynchronous save on a disk that blocks or fails. The program continues; a program that throws still
# ends within two seconds; a program whose last save failed ends with an error. In each case the previous checkpoint is intact.
set -uo pipefail
shim=$1 ranks=$2
shift 2
# shellcheck source=tests/integration/saving/support.sh
. "$(dirname "${BASH_SOURCE[0]}")/support.sh"
last=$((ranks - 1))

# run KIND RANK ARGUMENT...: runs with this fault of the rank's disk at call $at; the fourth call is made by the saving thread
run() {
  local kind=$1 rank=$2
  shift 2
  timeout 60 env FAULT_PATH="$work/run/second" FAULT_KIND="$kind" FAULT_RANK="$rank" FAULT_AT="$at" FAULT_SECONDS="$seconds" LD_PRELOAD="$shim" "${command[@]}" "$@" >output 2>&1
  code=$?
  ended=$(date +%s%3N)
}
time_of() { sed -n "s/^rank $1 $2 at //p" output; }
check_older() {
  "${command[@]}" load >load_output 2>&1 || fail "$1: the older checkpoint does not load"
  grep -q '^loaded 1$' load_output || fail "$1: the older checkpoint has another version"
}
command=("$@")
at=4

seconds=3
run delay "$last" train
[ $code -eq 0 ] || fail "a slow disk ended the run with $code"
for ((rank = 0; rank < ranks; ++rank)); do
  [ $(($(time_of $rank 'has worked') - $(time_of $rank saves))) -lt 2500 ] || fail "rank $rank waited for a disk before its next save"
  [ $(($(time_of $rank 'has waited') - $(time_of $rank saves))) -ge 3000 ] || fail "rank $rank did not wait for the disk, or the disk was not slow"
done
check_older 'after a slow disk'

seconds=100000
for failing in $(seq 0 "$last"); do
  run delay "$failing" throw "$failing"
  if [ $code -eq 0 ] || [ $code -eq 124 ]; then fail "rank $failing threw while its disk blocked: the job ended with $code"; fi
  [ $((ended - $(time_of "$failing" continues))) -lt 2000 ] || fail "rank $failing threw while its disk blocked: the job ended only after $((ended - $(time_of "$failing" continues))) ms"
  grep -q "^hortator: rank $failing (.*the program's own reason" output || fail "the error of rank $failing is not reported"
  check_older 'after an exception'
done

at=1000000
run EIO "$last" end
[ $code -eq 0 ] || fail "a run that ends during a save ended with $code"
at=4
run EIO "$last" end
[ $code -eq 1 ] || fail "a run whose last save failed ended with $code"
grep -q "^hortator: rank $last (.*Input/output error" output || fail 'the failure of the last save is not reported'
grep -q 'Input/output error' run/failure.json || fail 'failure.json does not have the failure of the last save'
[ ! -e run/outcome.json ] || fail 'a run whose last save failed wrote outcome.json'
check_older 'after a failed save'
