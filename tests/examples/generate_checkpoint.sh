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
printf 'the galley\nthe galley\nthe galley\n' >equal
run "${launcher[@]}" "$generate" --model model --prompts equal --answers equal-random --batch-size 2 "${random[@]}"
expect_code 0
[ "$(sort -u equal-random | wc -l)" = 3 ] || wrong 'equal prompts have equal random answers'

# what the checkpoint asks for counts where the command line says nothing
echo '{"do_sample": true, "temperature": 2.0, "top_k": 20, "top_p": 0.95, "max_new_tokens": 9, "no_repeat_ngram_size": 3}' >model/generation_config.json
run "$generate" --model model --prompts prompts --answers asked --batch-size 1 --seed 5
expect_code 0
expect_line 'generation_config.json asks for what generate.. does not have: no_repeat_ngram_size .3.'
cmp one-random asked || wrong 'generation_config.json does not choose how tokens are chosen'
run "$generate" --model model --prompts prompts --answers asked --batch-size 1 --sample=false
expect_code 0
cmp one asked || wrong 'the command line does not come before generation_config.json'
rm model/generation_config.json

# a model that is divided among ranks
if [[ " ${launcher[*]} " == *' 2 '* ]]; then
  run "${launcher[@]}" "$generate" --model model --tensor 2 --prompts prompts --answers divided --batch-size 4 --max-new-tokens 9
  expect_code 0
  cmp one divided || wrong 'a divided model gives different answers'
  run "${launcher[@]}" "$generate" --model model --tensor 2 --prompts prompts --answers divided-random --batch-size 4 "${random[@]}"
  expect_code 0
  cmp one-random divided-random || wrong 'a divided model draws different tokens'
  run "${launcher[@]}" "$generate" --model model --pipeline 2 --prompts prompts --answers staged --batch-size 4 --max-new-tokens 9
  expect_code 0
  cmp one staged || wrong 'a model along a pipeline gives different answers'
  run "${launcher[@]}" "$generate" --model model --pipeline 2 --prompts prompts --answers staged-random --batch-size 4 "${random[@]}"
  expect_code 0
  cmp one-random staged-random || wrong 'a model along a pipeline draws different tokens'
else
  run "${launcher[@]}" "$generate" --model model --tensor 2 --prompts prompts --answers divided
  expect_code 2
fi
run "$generate" --tensor 2 --prompts prompts --answers divided
expect_code 2
expect_line '--tensor: expected --model DIR as well'

# beams, stop texts and messages
run "${launcher[@]}" "$generate" --model model --prompts prompts --answers beams --beams 3 --max-new-tokens 9
expect_code 0
if cmp -s one beams; then wrong 'beams find the answers of greedy decoding'; fi
character=$(head -1 one | cut -c 3)
run "${launcher[@]}" "$generate" --model model --prompts prompts --answers stopped --stop "$character" xyz --max-new-tokens 9
expect_code 0
[ "$(head -1 stopped)" = "$(head -1 one | sed "s/\($character\).*/\1/")" ] || wrong 'the answer does not end with the stop text'
run "${launcher[@]}" "$generate" --model model --prompts prompts --answers messages --chat --max-new-tokens 9
expect_line 'has no chat template'
echo '{% for message in messages %}{{ message.content }}.{% endfor %}' >model/chat_template.jinja
run "${launcher[@]}" "$generate" --model model --prompts prompts --answers messages --chat --max-new-tokens 9
expect_code 0
if cmp -s one messages; then wrong 'the chat template has no effect'; fi

interactive() { printf 'the galley\n\nthe galley\n' | "$generate" --model model --interactive --max-new-tokens 9 "$@"; }
interactive >spoken || wrong '--interactive fails'
answer=$(printf 'the galley\n' >single; "$generate" --model model --prompts single --answers said --max-new-tokens 9 >/dev/null; cat said)
[ "$(grep -cF "> $answer" spoken)" = 2 ] || wrong 'what is typed has another answer'
interactive --chat >chatted || wrong '--interactive --chat fails'
[ "$(grep -c '^> ' chatted)" = 4 ] || wrong 'a conversation has another number of answers'
if [[ " ${launcher[*]} " == *' 2 '* ]]; then
  run "${launcher[@]}" "$generate" --model model --interactive
  expect_code 2
  expect_line '--interactive: expected one rank, got 2'
fi
run "$generate" --model model --interactive --prompts prompts
expect_code 2
expect_line '--interactive: reads the standard input'
run "$generate" --model model --prompts prompts --answers many --beams 2 --sample
expect_code 2
expect_line '--beams: .*--sample cannot be given'

# wrong options end the run before any answer
refused() {
  local line=$1
  shift
  run "${launcher[@]}" "$generate" --model model --prompts prompts --answers none "$@"
  expect_code 2
  expect_line "$line"
  [ ! -e none ] || wrong "there are answers with $*"
}
refused '--temperature: expected a number above 0' --sample --temperature 0
refused '--temperature, --top-k and --top-p: expected --sample' --temperature 0.5
refused '--top-p: expected a number above 0 up to 1' --sample --top-p 0
refused '--top-k: expected a whole number from 0' --sample --top-k -1
refused '--max-new-tokens: expected a whole number from 1' --max-new-tokens 0
refused '--stop: every answer contains an empty text' --stop ''
refused '500 beams need 1000 tokens' --beams 500

echo '[[999999]]' >ids.json
run "$generate" --model model --ids ids.json --logits logits.safetensors
expect_code 2
expect_line 'input_ids: expected numbers from 0 to 60, got 999999'
echo '[[3, 4, 5], [6, 7]]' >ids.json
run "$generate" --model model --ids ids.json --logits logits.safetensors --hidden hidden.safetensors
expect_code 0
grep -aq '"logits":{"dtype":"F32","shape":\[2,3,61\]' logits.safetensors || wrong 'the logits were not written'
grep -aq '"last_hidden_state":{"dtype":"F32","shape":\[2,3,' hidden.safetensors || wrong 'the hidden states were not written'
if [[ " ${launcher[*]} " == *' 2 '* ]]; then
  run "${launcher[@]}" "$generate" --model model --tensor 2 --ids ids.json --logits divided.safetensors --hidden hidden.divided
  expect_code 0
  run "${launcher[@]}" "$generate" --model model --pipeline 2 --ids ids.json --logits staged.safetensors --hidden hidden.staged
  expect_code 0
  cmp logits.safetensors staged.safetensors || wrong 'a model along a pipeline has other logits'
  cmp hidden.safetensors hidden.staged || wrong 'a model along a pipeline has other hidden states'
  values() { tail -c $((2 * 3 * 61 * 4)) "$1" | od -A n -v -t f4 -w4; }
  paste <(values logits.safetensors) <(values divided.safetensors) |
    awk '{ d = $1 - $2; if (d > 1e-4 || d < -1e-4) bad = 1 } END { exit bad || NR != 2 * 3 * 61 }' || wrong 'a divided model has other logits'
fi

echo '{"a": "b"}' >ids.json
run "$generate" --model model --ids ids.json --logits logits.safetensors
expect_code 2
expect_line 'expected a list of whole numbers'
run "$generate" --model model --ids ids.json
expect_code 2
expect_line '--ids, with --logits or --hidden: expected both'
run "$generate" --model nowhere --prompts prompts --answers many
expect_line 'Cannot read the configuration .nowhere.'
