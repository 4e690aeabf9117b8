#!/usr/bin/env bash
# gpt.sh PROGRAM LAUNCHER...: the example on several ranks. Stopped and resumed, it is the run that was never stopped.
set -euo pipefail
# shellcheck source=tests/setup/support.sh
. "$(dirname "${BASH_SOURCE[0]}")/../setup/support.sh"
gpt=$1
launcher=("${@:2}")
cd "$scratch"
for i in $(seq 1000); do echo "$i galleys keep time, and $((i * i)) rowers hear the hortator"; done >text
tiny=(--text text --steps 8 --batch-size 4 --context 16 --layers 2 --width 16 --heads 2 --checkpoint-every 2)

train() { run "${launcher[@]}" "$gpt" "${tiny[@]}" "$@"; expect_code 0; }
held_out() { grep -aF 'held-out text:'; }
expect_same_end() {
  cmp whole/loss.csv parts/loss.csv || wrong 'the losses differ from those of the run that was never stopped'
  [ "$(held_out <<<"$output")" = "$(held_out <whole.txt)" ] || wrong 'the model differs from that of the run that was never stopped'
}

HORTATOR_ESTIMATE=1 train --run-dir estimated
expect_line '^model 0: [0-9]+ numbers in'
expect_line 'ZeRO 3'
expect_no_line 'learn from'
expect_absent estimated

train --run-dir whole
printf '%s\n' "$output" >whole.txt
expect_no_line 'goes on at'
expect_line '^held-out text: [0-9.]+ nats a byte'
expect_line '^The '
[ "$(wc -l <whole/loss.csv)" = 9 ] || wrong 'the table of losses has no row a step'

train --run-dir parts --stop-after 3
expect_line '^stopped after step 3'
train --run-dir parts --stop-after 4
expect_line 'goes on at step 3 of 8'
expect_line '^stopped after step 7'
train --run-dir parts
expect_line 'goes on at step 7 of 8'
expect_same_end

# a run that is over stays as it is
train --run-dir parts
expect_line 'goes on at step 8 of 8'
expect_same_end

run "${launcher[@]}" "$gpt" --run-dir wrong --width 10 --heads 4
expect_code 2
[ "$(grep -ac '^hortator: rank' <<<"$output")" = 1 ] || wrong 'a usage error is not told once'
expect_line 'hortator: rank .*--width is not an even multiple of --heads.*choose for example'
expect_absent wrong
