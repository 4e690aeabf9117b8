#!/usr/bin/env bash
# mesh.sh LANGUAGE_MODEL MPIEXEC NUMPROC_FLAG [PREFLAG...]: with --reproducible mesh, losses and weights have the same bits on 1, 2 and 4 ranks
# at each stage of ZeRO, along pipelines, and after a resume on another mesh; without it they have not.
set -euo pipefail
# shellcheck source=tests/setup/support.sh
. "$(dirname "${BASH_SOURCE[0]}")/../setup/support.sh"
program=$1 mpiexec=$2 ranks_flag=$3
preflags=("${@:4}")
cd "$scratch"
mkdir model
cat >model/config.json <<'JSON'
{"architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 256, "hidden_size": 16, "intermediate_size": 24,
 "num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 1, "max_position_embeddings": 64, "tie_word_embeddings": true}
JSON
for i in $(seq 90); do echo "$i galleys keep time, and $((i * i)) rowers hear the hortator"; done >text
common=(--model model --random-weights --text text --bytes --documents line --batch-size 16 --context-length 24 --learning-rate 1e-2 --cpu)
steps=6
# train RANKS FOLDER OPTION...
train() {
  run "$mpiexec" "$ranks_flag" "$1" "${preflags[@]}" "$program" "${common[@]}" --steps "$steps" --run-dir "$2" "${@:3}"
  expect_code 0
}
# same FOLDER: the losses and the saved weights are those of the first run
same() {
  cmp -s one/loss.csv "$1/loss.csv" || wrong "the losses of $1 differ: $(paste one/loss.csv "$1/loss.csv")"
  cmp -s one/model/model.safetensors "$1/model/model.safetensors" || wrong "the weights of $1 differ"
}

train 1 one --reproducible mesh
[ "$(wc -l <one/loss.csv)" = 7 ] || wrong 'loss.csv does not have one row per step'
for mesh in '2 0' '2 1' '2 2' '2 3' '4 0' '4 3' '1 3'; do
  read -r ranks stage <<<"$mesh"
  train "$ranks" "ranks$ranks-zero$stage" --reproducible mesh --zero "$stage"
  same "ranks$ranks-zero$stage"
done

for pipeline in '2 2 1f1b' '2 2 zb-h1' '4 2 1f1b'; do
  read -r ranks stages schedule <<<"$pipeline"
  HORTATOR_PIPELINE_SCHEDULE=$schedule train "$ranks" "ranks$ranks-$schedule" --reproducible mesh --pipeline "$stages"
  same "ranks$ranks-$schedule"
done

# A run that moves from mesh to mesh.
train 1 moved --reproducible mesh --stop-after 2
train 4 moved --reproducible mesh --stop-after 1 --zero 3
train 2 moved --reproducible mesh --stop-after 1 --zero 2
train 2 moved --reproducible mesh --stop-after 1 --pipeline 2
train 2 moved --reproducible mesh
same moved

# Sums in another order are seen in these digits.
train 1 plain-one
train 4 plain-four
! cmp -s plain-one/model/model.safetensors plain-four/model/model.safetensors || wrong 'other orders of sums give the same weights: this test proves nothing'

# Along tensor and context, where bits differ, the losses of 50 steps are those of one rank within 1e-6.
steps=50
train 1 long-one
for axis in tensor context; do
  train 2 "long-$axis" "--$axis" 2
  ! cmp -s long-one/model/model.safetensors "long-$axis/model/model.safetensors" || wrong "$axis 2 gives the same weights: it can be reproducible"
  largest=$(paste -d, long-one/loss.csv "long-$axis/loss.csv" |
    awk -F, 'NR > 1 { d = $4 - $2; if (d < 0) d = -d; if (d > largest) largest = d } END { print (NR == 51 && largest < 1e-6 ? "near" : largest) }')
  [ "$largest" = near ] || wrong "the losses of $axis 2 differ by $largest"
done

run "$mpiexec" "$ranks_flag" 2 "${preflags[@]}" "$program" "${common[@]}" --run-dir refused --reproducible mesh --tensor 2
expect_code 2
expect_line 'reproducible = true with parallel.tensor = 2'
