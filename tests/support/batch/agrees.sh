#!/usr/bin/env bash
# agrees.sh BATCH LOG PROGRAM WHOLE_FILTER PART_FILTER... -- LAUNCHER...: the cases of a batch, one part at a time, are those of the whole batch, and
# have the same results.
set -euo pipefail

batch=$1 log=$2 program=$3 whole=$4
shift 4
parts=()
while [ "$1" != -- ]; do parts+=("$1"); shift; done
shift
results() { awk -F'\t' '$1 == "begin" { name = $2; next } { print $1 "\t" name }' "$1" | sort; }

"$batch" "$log" "$program" "$whole" "$@"
for i in "${!parts[@]}"; do "$batch" "$log.$i" "$program" "${parts[$i]}" "$@"; done
diff <(results "$log") <(for i in "${!parts[@]}"; do results "$log.$i"; done | sort)
echo "the batch and its ${#parts[@]} parts agree"
