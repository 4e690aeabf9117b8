#!/usr/bin/env bash
# processors.sh BUILD [CTEST_OPTION...]: runs tests with the instructions of other processors, whose kernels sum in other orders: those of AVX-512
# without matrix tiles, of AVX2, and of SSE 4 (ATen's and MKL's kernels). Without options, the tests of single cases (-L batch). What this processor
# does not have is left out. Prints the failed tests of each kind, keeps their output in BUILD/processors.*.log, and returns 1 if there are any.
set -euo pipefail
if [ $# -lt 1 ]; then sed -n '2,4s/^# //p' "$0"; exit 2; fi
build=$1
shift
[ $# -gt 0 ] || set -- -L '^batch$'
# run_as KIND FLAG CTEST_OPTION...: the tests with `settings`, where this processor has FLAG
result=0
run_as() {
  local kind=$1 flag=$2 log=$build/processors.$2.log
  shift 2
  if ! grep -qw "$flag" /proc/cpuinfo; then echo "$kind: skipped, this processor has no $flag"; return; fi
  if env "${settings[@]}" ctest --test-dir "$build" --output-on-failure "$@" >"$log" 2>&1; then
    echo "$kind: $(grep -a 'tests passed' "$log")"
  else
    result=1
    echo "$kind:"
    grep -aE '^failed: |\((Failed|Timeout)\)|tests passed' "$log" || tail -n 20 "$log"
  fi
}

settings=(ATEN_CPU_CAPABILITY=avx512 MKL_ENABLE_INSTRUCTIONS=AVX512)
run_as 'AVX-512' avx512f "$@"
settings=(ATEN_CPU_CAPABILITY=avx2 MKL_ENABLE_INSTRUCTIONS=AVX2)
run_as 'AVX2' avx2 "$@"
settings=(ATEN_CPU_CAPABILITY=default MKL_ENABLE_INSTRUCTIONS=SSE4_2)
run_as 'SSE 4' sse4_2 "$@"
exit "$result"
