#!/bin/bash
# planted.sh BIN: errors of configuration are found by rehearsing one rank, without the others. Prints a table of them.
# shellcheck source=tests/integration/rehearsal/common.sh
. "$(dirname "$0")/common.sh"

echo "a short text" >short.txt
examples=$bin/by_feature
llama=("${language_model[@]}")
small_gpt=("$bin/gpt" --steps 3 --batch-size 12 --cpu --run-dir run)
experts=("$examples/mixture_of_experts" --run-dir run)
planted=0
found=0

# plant 'ERROR' RANKS RANK TEXT [NAME=VALUE...] -- PROGRAM...: a rehearsal of the rank ends with 1 and prints the text.
plant() {
  local error=$1 ranks=$2 rank=$3 text=$4 variables=() code=0
  shift 4
  while [[ $1 != -- ]]; do
    variables+=("$1")
    shift
  done
  shift
  planted=$((planted + 1))
  env "${variables[@]}" "$bin/hortator" rehearse -n "$ranks" --rank "$rank" "${options[@]}" -- "$@" >output.log 2>&1 || code=$?
  local verdict=found
  if [[ $code != 1 ]] || ! grep -qF -- "$text" output.log; then
    verdict=MISSED
    fail "$error: exit code $code, and '$text' is expected in: $(tail -3 output.log)"
  else
    found=$((found + 1))
  fi
  printf '%-7s rank %3d of %-4d %s\n' "$verdict" "$rank" "$ranks" "$error"
}

options=()
plant "8 heads for 16 tensor ranks" 16 5 "cannot be divided along dimension 0 in heads" -- "${llama[@]}" --tensor 16
plant "12 ranks for 8 tensor ranks" 12 3 "must divide" -- "${llama[@]}" --tensor 8
plant "6 ranks for 4 stages" 6 1 "must divide" -- "${llama[@]}" --pipeline 4
plant "2 ranks for 4 context ranks" 2 1 "context (4) must divide" HORTATOR_CONTEXT=4 -- "${llama[@]}"
plant "8 ranks for 3 sets of replicas" 8 5 "replicate (3)" HORTATOR_REPLICATE=3 -- "${llama[@]}" --zero 3
plant "8 ranks for sets of 3 shards" 8 5 "shard (3) must divide" HORTATOR_SHARD=3 -- "${llama[@]}" --zero 3
plant "shards without ZeRO" 8 5 "zero.stage is 0" HORTATOR_SHARD=4 -- "${llama[@]}"
plant "ZeRO 3 in a pipeline" 8 7 "stages 2 and 3 would communicate" -- "${llama[@]}" --pipeline 2 --zero 3
plant "16 stages for 4 layers" 16 0 "stages" -- "${llama[@]}" --pipeline 16
plant "stages of a rank in a schedule that has one" 4 3 "not interleaved" HORTATOR_STAGES_PER_RANK=2 -- "${llama[@]}" --pipeline 2
plant "no micro-batch in a batch" 2 1 "expected a whole number from 1" HORTATOR_MICRO_BATCHES=0 -- "${llama[@]}" --pipeline 2
plant "a schedule that does not exist" 4 3 "got '1f1bb'" HORTATOR_PIPELINE_SCHEDULE=1f1bb -- "${llama[@]}" --pipeline 2
plant "a batch of 7 for 64 ranks" 64 63 "cannot be split over 64 ranks" -- "${llama[@]}" --batch-size 7
plant "a text shorter than a window" 64 1 "too short for a context of 128" -- "${small_gpt[@]}" --text short.txt
plant "one step, and no second" 2 1 "ended before its second update" -- "${llama[@]}" --steps 1
plant "8 experts for 3 ranks" 3 1 "use a divisor of the number of experts" -- "${experts[@]}" --experts 3
plant "4 ranks for groups of 3 with all experts" 4 1 "use a divisor of their number" HORTATOR_EXPERTS=3 -- "${experts[@]}" --experts 1
plant "experts beside tensor ranks" 4 1 "divided among the ranks of one group only" HORTATOR_TENSOR=2 -- "${experts[@]}" --experts 2
plant "experts in a pipeline" 4 3 "leave one of the two out" HORTATOR_PIPELINE=2 -- "${experts[@]}" --experts 2
plant "tensor ranks for a model without a plan" 2 1 "no plan by which" HORTATOR_TENSOR=2 -- "${small_gpt[@]}" --text text.txt
plant "a pipeline for a loop without pipeline_step()" 2 1 "called outside of a pipeline" HORTATOR_PIPELINE=2 -- "${small_gpt[@]}" --text text.txt
plant "8-bit gathers at stage 1" 4 3 "only stage 3 gathers parameters" HORTATOR_INT8_GATHERS=1 -- "${llama[@]}" --zero 1
plant "offloaded parameters at stage 1" 4 3 "only stage 3 shards parameters" HORTATOR_OFFLOAD_PARAMETERS=cpu -- "${llama[@]}" --zero 1
plant "offloaded moments at stage 0" 4 3 "stage 0 has no shards" HORTATOR_OFFLOAD_OPTIMIZER=cpu -- "${llama[@]}"
plant "recomputed layers that the model has not" 2 1 "no layer of a Sequential matches 'NoSuchLayer'" HORTATOR_RECOMPUTE_LAYERS=NoSuchLayer -- "${llama[@]}"
plant "reproducible sums beside tensor ranks" 4 1 "depend on their number" -- "${llama[@]}" --reproducible mesh --tensor 2
plant "reproducible sums beside context ranks" 4 1 "a virtual shard is computed by one rank" -- "${llama[@]}" --reproducible mesh --context 2
plant "8 virtual shards for 3 ranks" 3 1 "must have the same number of shards" -- "${llama[@]}" --reproducible mesh --batch-size 9
plant "an adapter for layers that the model has not" 2 1 "No layer of the model fits" -- "${llama[@]}" --lora 8 --lora-targets nothing_proj
plant "no micro-step in an update" 2 1 "expected a whole number from 1" HORTATOR_GRADIENT_ACCUMULATION_STEPS=0 -- "${llama[@]}"
options=(--memory 1MB)
plant "ranks with too little memory" 2 1 "does not fit into" -- "${llama[@]}"
options=()
echo "$found of $planted planted errors found"

# No errors: weights that the first and the last stage share, and stages of uneven length.
make_llama tied 128 3 8 4
sed -i 's/"tie_word_embeddings": false/"tie_word_embeddings": true/' tied/config.json
"$bin/hortator" rehearse -n 2 --rank 0,1 -- "${language_model[@]/llama/tied}" --pipeline 2 >output.log 2>&1 ||
  fail "tied weights over uneven stages: $(cat output.log)"
exit $((fails > 0))
