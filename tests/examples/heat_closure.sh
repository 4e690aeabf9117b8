#!/usr/bin/env bash
# heat_closure.sh PROGRAM SETTINGS LAUNCHER...: the closure that a solver in Fortran learns while it runs makes the coarse solver better. The program
# loads its own compiler's libgfortran, resumes a finished run, reports wrong settings with their line, and stops at SIGUSR1 to one rank with code 75, saved.
set -euo pipefail
# shellcheck source=tests/setup/support.sh
. "$(dirname "${BASH_SOURCE[0]}")/../setup/support.sh"
# shellcheck source=tests/support/ranks_of.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/ranks_of.sh"
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

rm -rf runs
"${launcher[@]}" "$program" "$settings" >stopped.txt 2>&1 &
job=$!
until [ -e runs/heat_closure/run.lock ]; do
  kill -0 "$job" 2>/dev/null || wrong 'the run ended before the signal'
  sleep 0.02
done
mapfile -t ranks < <(ranks_of "$job" | sort -n)
kill -USR1 "${ranks[-1]}"
code=0
wait "$job" || code=$?
output=$(cat stopped.txt)
expect_code 75
expect_line 'Stopping early: the run is saved in .*runs/heat_closure/checkpoint and leaves'
run "${launcher[@]}" "$program" "$settings"
expect_code 0
expect_line '^resumed at step [0-9]+'
