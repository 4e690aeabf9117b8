#!/usr/bin/env bash
# language_model.sh PROGRAM LAUNCHER...: the losses are the same on one rank and on several, with and without ZeRO and recomputation; a run that
# was stopped resumes; the saved model is loaded again.
set -euo pipefail
# shellcheck source=tests/setup/support.sh
. "$(dirname "${BASH_SOURCE[0]}")/../setup/support.sh"
program=$1
launcher=("${@:2}")
cd "$scratch"
mkdir model
cat >model/config.json <<'JSON'
{"architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 256, "hidden_size": 16, "intermediate_size": 24,
 "num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 1, "max_position_embeddings": 64, "tie_word_embeddings": true}
JSON
for i in $(seq 60); do echo "$i galleys keep time, and $((i * i)) rowers hear the hortator"; done >text
echo 'another file' >other_text
common=(--model model --random-weights --text text other_text --bytes --documents line --batch-size 4 --context-length 24 --learning-rate 1e-2 --cpu)
# close FILE FILE: the same steps, and losses that differ by less than 2e-5
close() {
  paste -d, "$1" "$2" | awk -F, 'NR > 1 { d = $2 - $4; if ($1 != $3 || d > 2e-5 || d < -2e-5) exit 1 } END { if (NR < 3) exit 1 }' ||
    wrong "the losses of $1 and $2 differ"
}

run "$program" "${common[@]}" --steps 12 --run-dir one
expect_code 0
expect_line '^training on [0-9]+ tokens in [0-9]+ windows'
[ "$(wc -l <one/loss.csv)" = 13 ] || wrong 'loss.csv does not have one row per step'
[ "$(head -1 one/loss.csv)" = step,loss ] || wrong 'the header of loss.csv is another'
awk -F, 'NR == 2 { first = $2 } { last = $2 } END { exit !(last < 0.8 * first) }' one/loss.csv || wrong 'the loss does not fall'
run "${launcher[@]}" "$program" "${common[@]}" --steps 12 --run-dir many
expect_code 0
close one/loss.csv many/loss.csv
run "${launcher[@]}" "$program" "${common[@]}" --steps 12 --zero 3 --recompute --run-dir sharded
expect_code 0
close one/loss.csv sharded/loss.csv
cmp one/model/config.json sharded/model/config.json || wrong 'the saved configurations differ'

if [[ " ${launcher[*]} " == *' 2 '* ]]; then
  for axis in tensor context pipeline; do
    run "${launcher[@]}" "$program" "${common[@]}" --steps 12 "--$axis" 2 --run-dir "$axis"
    expect_code 0
    close one/loss.csv "$axis/loss.csv"
    cmp one/model/config.json "$axis/model/config.json" || wrong "the configuration that --$axis saves differs"
  done
  run "$program" --model tensor/model --text other_text --bytes --steps 1 --batch-size 2 --context-length 8 --run-dir whole --cpu
  expect_code 0
  run "${launcher[@]}" "$program" "${common[@]}" --steps 12 --tensor 3 --run-dir three
  expect_code 2
  run "${launcher[@]}" "$program" "${common[@]}" --steps 12 --pipeline 2 --zero 3 --run-dir both
  expect_code 2
  expect_line 'parallel.pipeline is 2, and zero.stage is 3'
fi

# the rows of a column are documents, as the lines of a file are; a build without Arrow's library says so
columns=$source_tree/tests/unit/data/files/columns
for i in $(seq 0 14); do echo "row $i"; done >lines
rows=(--model model --random-weights --column name --bytes --documents line --batch-size 4 --context-length 8 --steps 4 --cpu)
run "${launcher[@]}" "$program" "${rows[@]}" --text lines --run-dir lines_read
expect_code 0
run "${launcher[@]}" "$program" "${rows[@]}" --text "$columns/numbers.parquet" "$columns/more.parquet" --run-dir rows_read
if ! grep -q "where Arrow's C++ library was not found" <<<"$output"; then
  expect_code 0
  cmp lines_read/loss.csv rows_read/loss.csv || wrong 'the documents of a column are others than those of lines'
fi

run "${launcher[@]}" "$program" "${common[@]}" --steps 12 --stop-after 5 --run-dir parts
expect_code 0
expect_line '^stopped after step 5'
run "${launcher[@]}" "$program" "${common[@]}" --steps 12 --run-dir parts
expect_code 0
expect_line 'resumes at step 5 of 12'
close many/loss.csv parts/loss.csv

run "${launcher[@]}" "$program" --model sharded/model --text other_text --bytes --steps 1 --batch-size 2 --context-length 8 --run-dir again --cpu
expect_code 0
expect_line '^saved in '

run "${launcher[@]}" "$program" --text text
expect_code 2
expect_line '--model: a value is missing'
run "${launcher[@]}" "$program" --model model --text nowhere --bytes --random-weights
expect_code 2
expect_line "--text: cannot read 'nowhere'"
run "${launcher[@]}" "$program" --model model --text text --documents page
expect_code 2
expect_line "--documents: expected one of file, line, got 'page'"
run "$program" --help
expect_code 0
expect_line '--context-length N'
