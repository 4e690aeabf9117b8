#!/usr/bin/env bash
# mpio.sh SHIM RANKS HORTATOR COMMAND...: while all ranks write through MPI-IO, the disk of one rank fails at one of its calls. Either the job
# ends within seconds with code 74 and a message, or all ranks throw and the job ends as after any error; if MPI-IO hangs, the watchdog ends
# the job (124). The previous checkpoint is intact.
set -uo pipefail
shim=$1 ranks=$2 hortator=$3
shift 3
# shellcheck source=tests/integration/saving/support.sh
. "$(dirname "${BASH_SOURCE[0]}")/support.sh"

declare -A ends
# each line: the MPI-IO implementation (Open MPI's own, or ROMIO), RANK, CALL
while read -r io rank at; do
  fault="EIO under $io on rank $rank at call $at"
  without=romio
  [ "$io" = ompio ] || without=ompio
  timeout -s KILL 30 env HORTATOR_TIMEOUT=2s OMPI_MCA_io=^$without FAULT_PATH="$work/run/second" FAULT_KIND=EIO FAULT_RANK="$rank" FAULT_AT="$at" LD_PRELOAD="$shim" \
    "$@" mpio >output 2>&1 </dev/null
  code=$?
  ends[$code]=$((${ends[$code]:-0} + 1))
  [ $code -ne 137 ] || fail "$fault left the other ranks waiting"
  [ $code -eq 0 ] || grep -q '^hortator: rank' output || fail "$fault ended the job with $code without a message"
  if [ $code -eq 74 ]; then
    grep -qE '^hortator: rank [0-9]+ \(.*run/second was not written: .*state.h5' output || fail "$fault: the file that was not written is not reported"
  fi
  # code 0, the error was not detected: the checkpoint must be intact
  if [ $code -eq 0 ] && ! "$hortator" checkpoint verify run/second >output 2>&1; then fail "$fault was not detected, and run/second is damaged"; fi
  echo "$fault: $code, $(grep -m 1 '^hortator: rank' output)"
  rm -rf run/second*
done <<END
ompio 0 4
ompio 0 5
ompio 0 7
ompio $((ranks - 1)) 3
ompio $((ranks - 1)) 4
romio 0 5
romio 0 7
END
"$@" load >output 2>&1 || fail 'the older checkpoint does not load'
grep -q '^loaded 1$' output || fail 'the older checkpoint has another version'
[ "${ends[74]:-0}" -ge 1 ] || fail 'no fault ended the job with code 74'
