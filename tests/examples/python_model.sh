#!/usr/bin/env bash
# python_model.sh PROGRAM SETTINGS FILES RANKS LAUNCHER...: a model from Python that a program in Fortran trains has Python's losses. FILES is the
# folder of tests/unit/exported/make_files.py.
set -euo pipefail
# shellcheck source=tests/setup/support.sh
. "$(dirname "${BASH_SOURCE[0]}")/../setup/support.sh"
program=$1 settings=$2 files=$3 ranks=$4
launcher=("${@:5}")
cd "$scratch"
cp "$settings" "$files/mlp.pt2" .
run "${launcher[@]}" "$program" python_model.yaml
expect_code 0
grep -E '^[0-9]+, *[0-9.E+-]+$' <<<"$output" >losses.csv
paste -d, "$files/python_model.$ranks.csv" losses.csv |
  awk -F, '{ d = $2 - $4; if ($1 != $3 || d > 1e-5 || d < -1e-5) exit 1 } END { if (NR != 50) exit 1 }' || wrong "the losses are not Python's"
run "${launcher[@]}" "$program"
expect_line 'usage: python_model SETTINGS.yaml'
