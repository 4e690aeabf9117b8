#!/usr/bin/env bash
# lora.sh LANGUAGE_MODEL GENERATE LAUNCHER...: language_model --lora trains the same adapter on one rank and on several, resumes, and writes a folder
# that generate --adapter reads; mistakes are errors.
set -euo pipefail
# shellcheck source=tests/setup/support.sh
. "$(dirname "${BASH_SOURCE[0]}")/../setup/support.sh"
program=$1 generate=$2
launcher=("${@:3}")
cd "$scratch"
mkdir model
cat >model/config.json <<'JSON'
{"architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 256, "hidden_size": 16, "intermediate_size": 24,
 "num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 1, "max_position_embeddings": 64, "tie_word_embeddings": true}
JSON
for i in $(seq 60); do echo "$i galleys keep time, and $((i * i)) rowers hear the hortator"; done >text
for i in $(seq 60); do echo "WHAT $i SAYS IS NOT WHAT $i HEARS"; done >other_text
texts=(--bytes --documents line --batch-size 4 --context-length 24 --learning-rate 1e-2 --cpu)
run "$program" --model model --random-weights --text text "${texts[@]}" --steps 20 --run-dir base
expect_code 0
lora=(--model base/model --text other_text "${texts[@]}" --steps 10 --lora 4 --lora-targets q_proj v_proj down_proj)
# close FILE FILE: the same steps, and losses that differ by less than 2e-5
close() {
  paste -d, "$1" "$2" | awk -F, 'NR > 1 { d = $2 - $4; if ($1 != $3 || d > 2e-5 || d < -2e-5) exit 1 } END { if (NR < 3) exit 1 }' ||
    wrong "the losses of $1 and $2 differ"
}

run "$program" "${lora[@]}" --run-dir one
expect_code 0
expect_line '^saved in one/adapter'
awk -F, 'NR == 2 { first = $2 } { last = $2 } END { exit !(last < first) }' one/loss.csv || wrong 'the loss does not fall'
grep -q '"peft_type": "LORA"' one/adapter/adapter_config.json || wrong 'adapter_config.json is not of peft'
[ ! -e one/model ] || wrong 'the whole model was saved as well'
run "${launcher[@]}" "$program" "${lora[@]}" --zero 3 --recompute --run-dir sharded
expect_code 0
close one/loss.csv sharded/loss.csv
run "$program" "${lora[@]}" --recompute --run-dir recomputed
expect_code 0
close one/loss.csv recomputed/loss.csv
run "$program" "${lora[@]}" --random-weights --recompute --run-dir recomputed-random
expect_code 0
if [[ " ${launcher[*]} " == *' 2 '* ]]; then
  for axis in tensor context; do
    run "${launcher[@]}" "$program" "${lora[@]}" "--$axis" 2 --run-dir "$axis"
    expect_code 0
    close one/loss.csv "$axis/loss.csv"
  done
fi
run "${launcher[@]}" "$program" "${lora[@]}" --stop-after 4 --run-dir parts
expect_code 0
run "${launcher[@]}" "$program" "${lora[@]}" --run-dir parts
expect_code 0
expect_line 'resumes at step 4 of 10'
close one/loss.csv parts/loss.csv

echo '[[1, 2, 3, 4, 5], [70, 80, 90]]' >ids
run "$generate" --model base/model --ids ids --logits base.safetensors
expect_code 0
run "$generate" --model base/model --adapter one/adapter --ids ids --logits adapted.safetensors
expect_code 0
if cmp -s base.safetensors adapted.safetensors; then wrong 'the adapter changes nothing'; fi
if [[ " ${launcher[*]} " == *' 2 '* ]]; then
  run "${launcher[@]}" "$generate" --model base/model --adapter one/adapter --ids ids --logits divided.safetensors --tensor 2
  expect_code 0
fi

run "$program" --model base/model --text text "${texts[@]}" --lora-alpha 3
expect_code 2
expect_line 'expected --lora RANK as well'
run "$program" --model base/model --text text "${texts[@]}" --lora 4 --lora-targets c_attn
expect_code 2
expect_line 'layers have names that end with embed_tokens, q_proj'
run "$generate" --adapter one/adapter --prompts ids --answers answers
expect_code 2
expect_line '[-]-adapter: expected --model DIR as well'
run "$generate" --model base/model --adapter model --ids ids --logits none.safetensors
[ "$code" != 0 ] || wrong 'a folder without an adapter was accepted'
expect_line 'has no adapter_config.json'

# weights in 8 and 4 bits
for format in int8 int4 nf4; do
  run "$generate" --model base/model --quantise "$format" --ids ids --logits "$format.safetensors"
  expect_code 0
  if cmp -s base.safetensors "$format.safetensors"; then wrong "--quantise $format changes nothing"; fi
  run "$generate" --model base/model --quantise "$format" --adapter one/adapter --ids ids --logits both.safetensors
  expect_code 0
done
run "$generate" --model base/model --quantise nf4 --save packed
expect_code 0
run "$generate" --model packed --ids ids --logits packed.safetensors
expect_code 0
cmp nf4.safetensors packed.safetensors || wrong 'a packed model that was saved computes otherwise'
run "$generate" --model packed --speed 4 --cpu
expect_code 0
expect_line '[0-9] tokens a second'
run "$generate" --model base/model --quantise int4 --disk . --speed 2 --cpu
expect_code 0
expect_line 'MB of weights on disk'
run "$generate" --model base/model --quantise int4 --disk .
expect_code 2
expect_line '[-]-disk: expected --perplexity or --speed as well'
run "$generate" --model base/model --quantise int4 --disk . --speed 2 --adapter one/adapter
expect_code 2
expect_line '[-]-disk: expected --perplexity or --speed as well, and neither --quantise file nor --adapter'
run "$generate" --model base/model --quantise-group 32 --ids ids --logits none.safetensors
expect_code 2
expect_line '[-]-quantise-group: expected --quantise'
run "$generate" --model base/model --speed 2 --tensor 2
expect_code 2
expect_line '[-]-perplexity and --speed: measure the model on one rank'
run "$program" "${lora[@]}" --quantise int4 --run-dir quantised
expect_code 0
run "${launcher[@]}" "$program" "${lora[@]}" --quantise int4 --zero 3 --run-dir quantised-sharded
expect_code 0
close quantised/loss.csv quantised-sharded/loss.csv
run "$program" "${lora[@]}" --quantise int4 --quantise-scores no --run-dir whole-scores
expect_code 0
if cmp -s quantised/loss.csv whole-scores/loss.csv; then wrong '--quantise-scores changes nothing'; fi
run "$program" "${lora[@]}" --quantise file --run-dir none
expect_code 2
expect_line "[-]-quantise file: no weight of 'base/model' is packed"
run "$program" --model packed "${lora[@]:2}" --quantise file --run-dir from-packed
expect_code 0
run "$program" --model base/model --text text "${texts[@]}" --quantise int4
expect_code 2
expect_line 'expected --lora RANK as well'
run "$generate" --model base/model --quantise fp4 --ids ids --logits none.safetensors
expect_code 2
expect_line "Expected one of int8, int4, nf4, int8_groups as the format of weights, got 'fp4'"
