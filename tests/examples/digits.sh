#!/usr/bin/env bash
# digits.sh PROGRAM LAUNCHER...: the example learns the digits, writes tracker files and checkpoints; a second run has nothing left to do.
set -euo pipefail
# shellcheck source=tests/setup/support.sh
. "$(dirname "${BASH_SOURCE[0]}")/../setup/support.sh"
program=$1
launcher=("${@:2}")
cd "$scratch"
run "${launcher[@]}" "$program"
expect_code 0
right=$(sed -n 's/^epoch 3: \([0-9.]*\) % right$/\1/p' <<<"$output")
awk -v r="${right:-0}" 'BEGIN { exit !(r > 90) }' || wrong "only '$right' % are right"
rows=$(wc -l <runs/digits/logs/digits.jsonl)
ls runs/digits/logs/digits/events.out.tfevents.* >/dev/null || wrong 'event files are missing'
ls -d runs/digits/checkpoints/checkpoint_2 >/dev/null || wrong 'the third checkpoint is missing'
run "${launcher[@]}" "$program"
expect_code 0
[ "$(wc -l <runs/digits/logs/digits.jsonl)" = "$rows" ] || wrong 'a run with nothing to do wrote log rows'
run "$program" --help
expect_code 0
expect_line '^usage: digits '
run "$program" --epoch 1
expect_code 2
expect_line "Unknown option '--epoch'"
