#!/usr/bin/env bash
# larger_than_memory.sh PROGRAM GPT LAUNCHER...: the example trains the weights of another program further, offloaded to disk, and saves them;
# no files are left in the offload folder.
set -euo pipefail
# shellcheck source=tests/setup/support.sh
. "$(dirname "${BASH_SOURCE[0]}")/../setup/support.sh"
program=$1
gpt=$2
launcher=("${@:3}")
cd "$scratch"
for i in $(seq 1000); do echo "$i galleys keep time, and $((i * i)) rowers hear the hortator"; done >text
head -n 60 text >corpus
mkdir node_disk

run "${launcher[@]}" "$program"
expect_code 2
expect_line '--text: expected a file to train on'
run "${launcher[@]}" "$program" --text corpus --weights nowhere
expect_code 1
expect_line 'nowhere'
run "$gpt" --text text --steps 2 --batch-size 2 --context 64 --layers 12 --run-dir trained
expect_code 0
run "${launcher[@]}" "$program" --text corpus --weights trained/checkpoint --scratch node_disk --run-dir runs/larger
expect_code 0
[ -s runs/larger/final/manifest.json ] || wrong 'nothing was saved'
[ -z "$(find node_disk -type f)" ] || wrong 'files are left in the offload folder'
sed -n 's/.*"loss":\([0-9.]*\).*/\1/p' runs/larger/logs/*.jsonl |
  awk 'NR <= 2 { first += $1 } { last = before + $1; before = $1 } END { exit !(NR >= 4 && last < 0.9 * first) }' ||
  wrong "the loss does not decrease: $(cat runs/larger/logs/*.jsonl)"
