#!/usr/bin/env bash
# exported.sh PROGRAM FILES LAUNCHER...: models from Python are run and trained, with Python's losses on any number of ranks and with each stage
# of ZeRO. FILES is the folder of tests/unit/exported/make_files.py.
set -euo pipefail
# shellcheck source=tests/setup/support.sh
. "$(dirname "${BASH_SOURCE[0]}")/../setup/support.sh"
program=$1 files=$2
launcher=("${@:3}")
cd "$scratch"

# expect_losses NAME RUN: the losses of a run are Python's, to 1e-5.
expect_losses() {
  paste -d, "$files/$1.csv" "$2/loss.csv" |
    awk -F, 'NR > 1 { d = $2 - $4; m = $2 > 1 ? $2 : 1; if ($1 != $3 || d > 1e-5 * m || d < -1e-5 * m) exit 1 } END { if (NR != 51) exit 1 }' ||
    wrong "the losses of $2 are not Python's"
}
# train NAME RUN OPTION...
train() {
  run "${launcher[@]}" "$program" --model "$files/$1.pt2" --inputs "$files/$1.safetensors" --target "$files/$1.safetensors" --steps 50 --lr 0.01 --cpu \
    --run-dir "$2" "${@:3}"
  expect_code 0
}

for pair in mlp-0 mlp-1 mlp-2 mlp-3 attention-2 tied-0 tied-3; do
  name=${pair%-*} stage=${pair#*-}
  train "$name" "$pair" --zero "$stage"
  expect_losses "$name" "$pair"
done
train mlp saved --zero 3 --save trained.pt2
run "$program" --model trained.pt2 --inputs "$files/mlp.safetensors" --target "$files/mlp.safetensors" --steps 1 --lr 0.01 --cpu --run-dir again
expect_code 0
first=$(sed -n 's/^1,//p' again/loss.csv) last=$(sed -n 's/^50,//p' saved/loss.csv)
awk -v first="$first" -v last="$last" 'BEGIN { exit !(first > 0 && first < last) }' || wrong "the saved model begins with the loss $first"
grep -q 'embedding.weight' tied-3/model/model.safetensors || wrong 'the trained model has other names'
if [[ " ${launcher[*]} " == *' 2 '* ]]; then
  train mlp mlp-tensor --tensor 2
  expect_no_line 'No layers were found'
  expect_losses mlp mlp-tensor
fi

run "${launcher[@]}" "$program" --model "$files/mlp.pt2" --inputs "$files/mlp.safetensors" --outputs out.safetensors --gradients grads.safetensors --cpu
expect_code 0
grep -q '"output_0"' out.safetensors || wrong 'the outputs are missing'
grep -q '"layers.0.weight"' grads.safetensors || wrong 'the gradients are missing'
run "$program" --model "$files/mlp.pt2" --inputs "$files/mlp.safetensors" --cpu
expect_code 2
expect_line 'There is nothing to do'
run "$program" --model "$files/mlp.safetensors" --inputs "$files/mlp.safetensors" --outputs out.safetensors --cpu
expect_code 1
expect_line 'cannot be used as an exported model'
