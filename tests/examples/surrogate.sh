#!/usr/bin/env bash
# surrogate.sh PROGRAM SETTINGS LAUNCHER...: the surrogate that a solver in C trains while it runs is close to the term that it replaces.
set -euo pipefail
# shellcheck source=tests/setup/support.sh
. "$(dirname "${BASH_SOURCE[0]}")/../setup/support.sh"
program=$1 settings=$2
launcher=("${@:3}")
cd "$scratch"
run "${launcher[@]}" "$program" "$settings"
expect_code 0
read -r error size < <(sed -n 's/.*largest error \([^ ]*\) of \([^ ]*\) .*/\1 \2/p' <<<"$output")
awk -v e="$error" -v s="$size" 'BEGIN { exit !(e > 0 && e < 0.05 * s) }' || wrong "the surrogate's error is '$error' of '$size'"
run "$program"
expect_code 2
expect_line '^usage: surrogate '
