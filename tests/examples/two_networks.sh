#!/usr/bin/env bash
# two_networks.sh PROGRAM LAUNCHER...: the generator learns the radius of the circle, on any number of ranks.
set -euo pipefail
# shellcheck source=tests/setup/support.sh
. "$(dirname "${BASH_SOURCE[0]}")/../setup/support.sh"
program=$1
launcher=("${@:2}")
cd "$scratch"
run "${launcher[@]}" "$program"
expect_code 0
radius=$(sed -n 's/.*mean radius of generated points: //p' <<<"$output")
awk -v r="$radius" 'BEGIN { exit !(r > 0.7 && r < 1.3) }' || wrong "the generated points have a mean radius of '$radius'"
run "$program" --help
expect_code 0
expect_line '^usage: two_networks '
run "$program" --epoch 1
expect_code 2
expect_line "Unknown option '--epoch'"
