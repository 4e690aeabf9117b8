#!/usr/bin/env bash
# control.sh PROGRAM LAUNCHER...: all ranks stop at one step; the second run goes on with the average that the first saved.
set -euo pipefail
# shellcheck source=tests/setup/support.sh
. "$(dirname "${BASH_SOURCE[0]}")/../setup/support.sh"
program=$1
ranks=$2
launcher=("${@:3}")
cd "$scratch"
run "${launcher[@]}" "$program"
expect_code 0
expect_line '^stopped at step [1-9][0-9]*, sizes'
[ "$(grep -acE '(^|sizes) *64$' <<<"$output")" = "$ranks" ] || wrong 'not every rank has told its size'
run "${launcher[@]}" "$program"
expect_code 0
expect_line '^stopped at step 0, sizes'
