#!/usr/bin/env bash
# run.sh PROGRAM TARGET SECONDS SEEDS [OPTION...]: runs libFuzzer on a target for that time, or for HORTATOR_FUZZ_RUNS inputs, starting from the
# seeds. Inputs that crash are kept in the working directory. Skipped if the program was not built.
set -euo pipefail
program=$1 seconds=$3 seeds=$4
export HORTATOR_FUZZ_TARGET=$2
shift 4
[ -x "$program" ] || { echo "skipped: not built: needs clang 16 or newer with libFuzzer (libclang-rt-<release>-dev), and no other sanitizer"; exit 77; }
mkdir -p corpus
# a failed allocation is an exception, as without the sanitizer
export ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1 UBSAN_OPTIONS=halt_on_error=1
limit=-max_total_time=$seconds
if [ -n "${HORTATOR_FUZZ_RUNS:-}" ]; then limit=-runs=$HORTATOR_FUZZ_RUNS; fi
exec "$program" "$limit" -timeout=5 -rss_limit_mb=2048 -print_final_stats=1 -verbosity=1 "$@" corpus "$seeds"
