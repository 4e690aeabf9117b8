#!/usr/bin/env bash
# generate.sh PROGRAM GPT LAUNCHER...: several ranks give the same answers as one rank; a checkpoint that is mostly on disk gives the same
# answers as one in memory.
set -euo pipefail
# shellcheck source=tests/setup/support.sh
. "$(dirname "${BASH_SOURCE[0]}")/../setup/support.sh"
generate=$1
gpt=$2
launcher=("${@:3}")
cd "$scratch"
for i in $(seq 31); do printf '%s%.*s\n' "$i" $((i % 7)) 'galleys'; done >prompts
tiny=(--prompts prompts --bytes 12 --context 32 --layers 2 --width 16 --heads 2)

run "$generate" "${tiny[@]}" --answers one --batch-size 1
expect_code 0
run "${launcher[@]}" "$generate" "${tiny[@]}" --answers many --batch-size 5 --keep kept
expect_code 0
expect_line '^31 prompts answered by'
[ "$(wc -l <one)" = 31 ] || wrong 'not every prompt has an answer'
cmp one many || wrong 'several ranks and larger batches give different answers'
expect_absent kept

run "${launcher[@]}" "$generate" --prompts nowhere --answers many
expect_code 2
expect_line 'hortator: rank .*Cannot read the prompts in .nowhere.'
run "${launcher[@]}" "$generate" --prompts prompts --answers many --width 10 --heads 4
expect_code 2
expect_line 'hortator: rank .*--width: expected an even multiple of --heads'

shape=(--context 32 --layers 6 --width 64 --heads 2)
for i in $(seq 1000); do echo "$i galleys keep time, and $((i * i)) rowers hear the hortator"; done >text
run "$gpt" --text text --steps 2 --batch-size 2 "${shape[@]}" --run-dir trained
expect_code 0
saved=$(find trained -name manifest.json -printf '%h\n' | sort | tail -1)
run "$generate" --prompts prompts --bytes 12 "${shape[@]}" --weights "$saved" --answers resident
expect_code 0
run "${launcher[@]}" "$generate" --prompts prompts --bytes 12 "${shape[@]}" --weights "$saved" --memory 500000 --answers dispatched
expect_code 0
cmp resident dispatched || wrong 'a model that is mostly on disk gives different answers'
if cmp -s resident one; then wrong 'the weights were not loaded from the checkpoint'; fi
run "${launcher[@]}" "$generate" --prompts prompts --weights nowhere --answers many
expect_code 1
expect_line 'nowhere'
