#!/usr/bin/env bash
# heat_closure.sh PROGRAM SETTINGS LAUNCHER...: the closure that a solver in Fortran learns while it runs makes the coarse solver better. The program
# loads its own compiler's libgfortran, resumes a finished run, and reports wrong settings with their line.
set -euo pipefail
# shellcheck source=tests/setup/support.sh
. "$(dirname "${BASH_SOURCE[0]}")/../setup/support.sh"
program=$1 settings=$2
launcher=("${@:3}")
cd "$scratch"
own=$(readlink -f "$(gfortran -print-file-name=libgfortran.so)")
loaded=$(ldd "$program" | sed -n 's/.*libgfortran[^ ]* => \([^ ]*\).*/\1/p')
[ "$(readlink -f "$loaded")" = "$own" ] || wrong "the program loads '$loaded', not '$own'"

run "${launcher[@]}" "$program" "$settings"
expect_code 0
read -r without with < <(sed -n 's/.*error without closure *\([^ ]*\) *with it *\([^ ]*\).*/\1 \2/p' <<<"$output")
awk -v a="$without" -v b="$with" 'BEGIN { exit !(a > 1e-3 && b < a / 5) }' || wrong "the error with the closure is '$with', without '$without'"
[ "$(wc -l <profiles.csv)" = 33 ] || wrong 'profiles.csv does not have 32 cells'
[ "$(grep -c '^<polyline' profiles.svg)" = 3 ] || wrong 'profiles.svg does not have three lines'
[ "$(tail -n 1 profiles.svg)" = '</svg>' ] || wrong 'profiles.svg is not complete'
[ -f closure/model.safetensors ] || wrong 'the closure was not exported'

sed 's/layers:/layer:/' "$settings" >wrong.yaml
run "${launcher[@]}" "$program" wrong.yaml
[ "$code" != 0 ] || wrong 'wrong settings were accepted'
expect_line "wrong.yaml:7: models.closure: 'layers' is missing"
