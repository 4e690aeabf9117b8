#!/usr/bin/env bash
# text_classification.sh PROGRAM LAUNCHER...: a small BERT learns to tell pairs of texts apart, also on several ranks.
set -euo pipefail
# shellcheck source=tests/setup/support.sh
. "$(dirname "${BASH_SOURCE[0]}")/../setup/support.sh"
program=$1
launcher=("${@:2}")
cd "$scratch"
mkdir model
cat >model/config.json <<'JSON'
{"architectures": ["BertModel"], "model_type": "bert", "vocab_size": 24, "hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 2,
 "num_attention_heads": 2, "max_position_embeddings": 32, "type_vocab_size": 2, "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0,
 "initializer_range": 0.2, "pad_token_id": 0}
JSON
# a tokenizer of words
{
  printf '{"model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": 100, "vocab": {"[PAD]": 0, "[UNK]": 1, "[CLS]": 2, "[SEP]": 3'
  id=4
  for word in {a..t}; do printf ', "%s": %d' "$word" $((id++)); done
  printf '}}, "pre_tokenizer": {"type": "Whitespace"}, "post_processor": {"type": "BertProcessing", "sep": ["[SEP]", 3], "cls": ["[CLS]", 2]}}'
} >model/tokenizer.json
# label 1: the second text begins with an early word
pairs() {
  printf 'Quality\t#1 ID\t#2 ID\t#1 String\t#2 String\n'
  local i first=(a b c d e f g h) word
  for i in $(seq "$1"); do
    word=${first[i * 5 % 8]}
    case $word in a | b | c | d) label=1 ;; *) label=0 ;; esac
    printf '%d\t1\t2\tq "r %s\t%s t\n' "$label" "${first[i % 3]}" "$word"
  done
}
pairs 64 >train.tsv
pairs 21 >validation.tsv
common=(--model model --random-weights --train train.tsv --validation validation.tsv --lr 5e-3 --warmup-steps 4 --cpu)

run "${launcher[@]}" "$program" "${common[@]}" --num-epochs 8 --batch-size 8 --run-dir run
expect_code 0
expect_line '^epoch 7: accuracy (1|0\.9[0-9]*), f1 '
steps=$(($(wc -l <run/loss.csv) - 1))
[ "$steps" -ge 32 ] || wrong "loss.csv has $steps steps"
grep -q '"BertForSequenceClassification"' run/model/config.json || wrong 'the model was saved without its head'
# a run that is stopped within an epoch, and at its end, resumes
for steps_of_run in 3 $((steps / 8 - 3)) 0; do
  run "${launcher[@]}" "$program" "${common[@]}" --num-epochs 8 --batch-size 8 --run-dir parts --stop-after "$steps_of_run"
  expect_code 0
done
expect_line "^resumes in epoch [01] behind step $((steps / 8))"
cmp run/loss.csv parts/loss.csv || wrong 'the losses of the resumed run differ'
cmp run/model/model.safetensors parts/model/model.safetensors || wrong 'the model of the resumed run differs'

# The same batches, computed by one rank and by two together.
if [[ " ${launcher[*]} " == *' 2 '* ]]; then
  run "$program" "${common[@]}" --num-epochs 2 --batch-size 8 --in-order --run-dir alone
  expect_code 0
  accuracy=$(sed -n 's/^epoch 1: //p' <<<"$output")
  for axis in tensor context; do
    run "${launcher[@]}" "$program" "${common[@]}" --num-epochs 2 --batch-size 8 --in-order "--$axis" 2 --run-dir "$axis"
    expect_code 0
    expect_line "^epoch 1: $accuracy"
    paste -d, alone/loss.csv "$axis/loss.csv" | awk -F, 'NR > 1 { d = $2 - $4; if ($1 != $3 || d > 1e-4 || d < -1e-4) exit 1 } END { if (NR < 3) exit 1 }' ||
      wrong "--$axis changes the losses"
  done
fi

again=(--model run/model --train train.tsv --validation validation.tsv --num-epochs 1 --warmup-steps 2 --batch-size 8 --run-dir again --cpu)
run "${launcher[@]}" "$program" "${again[@]}"
expect_line 'run/model/tokenizer.json'
cp model/tokenizer.json run/model
run "${launcher[@]}" "$program" "${again[@]}"
expect_code 0
expect_line '^epoch 0: accuracy (1|0\.9[0-9]*), f1 '

printf '{"text": "a b", "label": "good"}\n{"text": "c", "label": "bad"}\n' >few.jsonl
run "${launcher[@]}" "$program" --model model --random-weights --train few.jsonl --validation few.jsonl --warmup-steps 0 --classes bad good --num-epochs 1 --batch-size 1 --zero 2 --run-dir lines --cpu
expect_code 0
expect_line '^epoch 0: accuracy '
run "${launcher[@]}" "$program" --model model --random-weights --train few.jsonl --validation few.jsonl --warmup-steps 0 --num-epochs 1 --run-dir lines --cpu
expect_line 'the member .label. is "good", expected int64'
run "${launcher[@]}" "$program" --model model --train train.tsv
expect_code 2
expect_line '--validation: a value is missing'
