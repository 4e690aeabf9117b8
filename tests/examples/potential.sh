#!/usr/bin/env bash
# potential.sh PROGRAM SETTINGS LAUNCHER...: the example in Fortran learns a potential from energies and forces.
set -euo pipefail
# shellcheck source=tests/setup/support.sh
. "$(dirname "${BASH_SOURCE[0]}")/../setup/support.sh"
program=$1 settings=$2
launcher=("${@:3}")
cd "$scratch"
cp "$settings" .
run "${launcher[@]}" "$program" potential.yaml
expect_code 0
number_after() { sed -nE "s/.*$1 *(-?[0-9.]+).*/\1/p" <<<"$output" | tail -n 1; }
expect_below() { awk -v value="$(number_after "$1")" -v limit="$2" 'BEGIN { exit !(value != "" && value < limit) }' || wrong "$1 is not below $2"; }
expect_below 'error of the energies' 0.05
expect_below 'of the forces' 0.2
expect_below 'change of the energy per particle' 0.01
curvature=$(number_after 'which is 8, 0.5, 0.5, 4:')
awk -v value="$curvature" 'BEGIN { exit !(value > 7 && value < 9) }' || wrong "the Hessian begins with $curvature"
run "${launcher[@]}" "$program"
expect_line 'usage: potential SETTINGS.yaml'
