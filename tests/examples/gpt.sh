#!/usr/bin/env bash
# gpt.sh PROGRAM LAUNCHER...: on several ranks, a run that is stopped and resumed equals the run that was never stopped.
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
expect_no_line 'training [0-9]+ parameters'
expect_absent estimated

train --run-dir whole
printf '%s\n' "$output" >whole.txt
expect_no_line 'resumes at'
expect_line '^held-out text: [0-9.]+ nats per byte'
expect_line '^The '
[ "$(wc -l <whole/loss.csv)" = 9 ] || wrong 'loss.csv does not have one row per step'

train --run-dir parts --stop-after 3
expect_line '^stopped after step 3'
train --run-dir parts --stop-after 4
expect_line 'resumes at step 3 of 8'
expect_line '^stopped after step 7'
train --run-dir parts
expect_line 'resumes at step 7 of 8'
expect_same_end

# running it again after its end changes nothing
train --run-dir parts
expect_line 'resumes at step 8 of 8'
expect_same_end

run "${launcher[@]}" "$gpt" --run-dir wrong --width 10 --heads 4
expect_code 2
[ "$(grep -ac '^hortator: rank' <<<"$output")" = 1 ] || wrong 'a usage error is not reported exactly once'
expect_line 'hortator: rank .*--width: expected an even multiple of --heads.*use for example'
expect_absent wrong
