#!/usr/bin/env bash
# generate_checkpoint.sh PROGRAM CHECKPOINT LAUNCHER...: the example generate with a Hugging Face checkpoint. Several ranks give the same answers
# as one, and the logits of given tokens are written.
set -euo pipefail
# shellcheck source=tests/setup/support.sh
. "$(dirname "${BASH_SOURCE[0]}")/../setup/support.sh"
generate=$1 checkpoint=$2
launcher=("${@:3}")
cd "$scratch"
mkdir model
cp "$checkpoint"/config.json "$checkpoint"/model.safetensors model
# a tokenizer of single characters
{
  printf '{"model": {"type": "BPE", "vocab": {"<s>": 0'
  id=1
  for c in {a..z} {0..9} Ġ . ',' '!'; do printf ', "%s": %d' "$c" $((id++)); done
  for c in {A..T}; do printf ', "%s": %d' "$c" $((id++)); done
  printf '}, "merges": []}, "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false}, "decoder": {"type": "ByteLevel"}}'
} >model/tokenizer.json
for i in $(seq 9); do printf '%.*s %s\n' "$i" 'the galley' "$i"; done >prompts

run "$generate" --model model --prompts prompts --answers one --batch-size 1 --max-new-tokens 9
expect_code 0
run "${launcher[@]}" "$generate" --model model --prompts prompts --answers many --batch-size 4 --max-new-tokens 9
expect_code 0
expect_line '^9 prompts answered by'
[ "$(wc -l <one)" = 9 ] || wrong 'not every prompt has an answer'
cmp one many || wrong 'several ranks and larger batches give different answers'
random=(--sample --temperature 2 --top-k 20 --top-p 0.95 --seed 5 --max-new-tokens 9)
run "$generate" --model model --prompts prompts --answers one-random --batch-size 1 "${random[@]}"
expect_code 0
run "${launcher[@]}" "$generate" --model model --prompts prompts --answers many-random --batch-size 4 "${random[@]}"
expect_code 0
cmp one-random many-random || wrong 'several ranks draw different tokens'
if cmp -s one one-random; then wrong 'the tokens are not random'; fi

echo '[[3, 4, 5], [6, 7]]' >ids.json
run "$generate" --model model --ids ids.json --logits logits.safetensors --hidden hidden.safetensors
expect_code 0
grep -aq '"logits":{"dtype":"F32","shape":\[2,3,61\]' logits.safetensors || wrong 'the logits were not written'
grep -aq '"last_hidden_state":{"dtype":"F32","shape":\[2,3,' hidden.safetensors || wrong 'the hidden states were not written'

echo '{"a": "b"}' >ids.json
run "$generate" --model model --ids ids.json --logits logits.safetensors
expect_code 2
expect_line 'expected a list of whole numbers'
run "$generate" --model model --ids ids.json
expect_code 2
expect_line '--ids, with --logits or --hidden: expected both'
run "$generate" --model nowhere --prompts prompts --answers many
expect_line 'Cannot read the configuration .nowhere.'
