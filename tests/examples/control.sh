#!/usr/bin/env bash
# control.sh PROGRAM RANKS LAUNCHER...: all ranks stop at the same step; a second run resumes with the average that the first one saved.
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
[ "$(grep -acE '(^|sizes) *64$' <<<"$output")" = "$ranks" ] || wrong 'the sizes of some ranks are missing'
run "${launcher[@]}" "$program"
expect_code 0
expect_line '^stopped at step 0, sizes'
cp runs/control/outcome.json before
run "$program" --help
expect_code 0
cmp before runs/control/outcome.json || wrong '--help replaced the outcome of the run before'
mkdir elsewhere && (cd elsewhere && "$program" --help >/dev/null)
[ ! -e elsewhere/runs ] || wrong '--help made a run folder'
expect_line '^usage: control '
run "$program" --epoch 1
expect_code 2
expect_line "Unknown option '--epoch'"
