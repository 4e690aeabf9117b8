#!/usr/bin/env bash
# side_by_side.sh PROGRAM FOLDER LAUNCHER...: solvers use the weights that another rank trains on their samples; a finished program is resumed at its
# end: it exchanges nothing, and has the same result.
set -euo pipefail
# shellcheck source=tests/setup/support.sh
. "$(dirname "${BASH_SOURCE[0]}")/../setup/support.sh"
program=$1 folder=$2
launcher=("${@:3}")
cd "$scratch"
run "${launcher[@]}" "$program" "$folder/solvers.yaml" "$folder/trainers.yaml"
expect_code 0
error=$(sed -n 's/.*relative error of the surrogate \([^ ]*\).*/\1/p' <<<"$output")
awk -v e="$error" 'BEGIN { exit !(e > 0 && e < 0.05) }' || wrong "the surrogate's relative error is '$error'"

run "${launcher[@]}" "$program" "$folder/solvers.yaml" "$folder/trainers.yaml"
expect_code 0
expect_line "exchanges 0  relative error of the surrogate $error"

run "$program"
expect_code 2
expect_line '^usage, on at least two ranks: side_by_side '
