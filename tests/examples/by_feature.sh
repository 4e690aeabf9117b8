#!/usr/bin/env bash
# by_feature.sh NAME PROGRAM HORTATOR LAUNCHER...: the example NAME runs on two ranks, and does what its header says. The launcher starts two ranks.
set -euo pipefail
# shellcheck source=tests/setup/support.sh
. "$(dirname "${BASH_SOURCE[0]}")/../setup/support.sh"
name=$1
program=$2
hortator=$3
launcher=("${@:4}")
cd "$scratch"

two() { run "${launcher[@]}" "$program" "$@"; expect_code 0; } # on two ranks
one() { run "$program"; expect_code 0; } # without a launcher
line() { grep -a "$1" <<<"$output" || wrong "no line contains '$1'"; }
loss() { line 'held-out loss' | sed -E 's/.*loss ([0-9.e-]+),.*/\1/'; }
expect_learned() { awk -v right="$(line '% right' | sed -E 's/.*, ([0-9.e+]+) % right.*/\1/')" 'BEGIN { exit !(right > 80) }' || wrong 'it has not learned'; }
expect_learned_each_time() { line '% right' | awk '{ sub(/.*, /, ""); if ($1 <= 80) bad = 1 } END { exit bad }' || wrong 'a smaller type has lost what was learned'; }
expect_near() { awk -v a="$1" -v b="$2" 'BEGIN { d = a - b; exit !(d * d <= 1e-6) }' || wrong "the losses $1 and $2 differ"; }

gradient_accumulation() {
  two --accumulate 4 --batch-size 8
  expect_learned
  expect_line '^144 updates from 576 batches'
  local accumulated
  accumulated=$(loss)
  two --accumulate 1 --batch-size 32
  expect_line '^144 updates from 144 batches'
  expect_near "$accumulated" "$(loss)"
}

automatic_gradient_accumulation() {
  two
  expect_line '^batches of 64, 1 for each update'
  local whole
  whole=$(loss)
  two --fits 20
  expect_line '^batches of 16, 4 for each update'
  expect_learned
  expect_near "$whole" "$(loss)"
}

checkpointing() {
  two --epochs 4 --run-dir whole
  expect_learned
  local whole
  whole=$(loss)
  two --epochs 2
  expect_no_line 'resumes'
  two --epochs 4
  expect_line '^resumes after 2 epochs'
  expect_line '^epoch 4: saved checkpoint_3'
  expect_line '^lowest training loss in epoch [34]'
  [ "$(loss)" = "$whole" ] || wrong "the resumed run differs from the whole one, $whole"
  [ "$(ls runs/checkpointing/checkpoints)" = $'checkpoint_2\ncheckpoint_3' ] || wrong "kept: $(ls runs/checkpointing/checkpoints)"
  run "$hortator" checkpoint verify runs/checkpointing/checkpoints/checkpoint_3
  expect_code 0
  run "$hortator" checkpoint show runs/checkpointing/checkpoints/checkpoint_3
  expect_line 'loss'
}

resume_mid_epoch() {
  two --run-dir whole
  expect_line '^3072 samples in 2 epochs'
  local whole
  whole=$(loss)
  two --stop-after 10
  expect_line '^stopped after 10 batches'
  two --stop-after 20
  expect_line '^resumes in epoch 0 behind batch 10 of 24'
  cp -r runs runs.two
  two
  expect_line '^resumes in epoch 1 behind batch 6 of 24'
  expect_line '^3072 samples in 2 epochs'
  [ "$(loss)" = "$whole" ] || wrong "the resumed run differs from the whole one, $whole"
  rm -rf runs
  mv runs.two runs
  one
  expect_line '^resumes in epoch 1 behind batch 12 of 48'
  expect_line '^3072 samples in 2 epochs'
}

compressed_files() {
  two
  expect_line '^9216 samples in 6 epochs of 4 files'
  expect_learned
  local plain
  plain=$(loss)
  two --per-rank --run-dir per_rank
  expect_line '^9216 samples in 6 epochs of 4 files'
  expect_learned
  command -v gzip >/dev/null || return 0
  gzip runs/compressed_files/data/*.jsonl
  run "${launcher[@]}" "$program" --data runs/compressed_files/data/*.jsonl.gz
  ! grep -q 'cannot read gzip files' <<<"$output" || return 0 # built without zlib
  expect_code 0
  [ "$(loss)" = "$plain" ] || wrong "compressed files give another model than plain ones, $plain"
}

early_stopping() {
  two
  expect_learned
  expect_line '^stopped after epoch ([4-9]|[1-5][0-9]) of 60, on all ranks'
  two --min-delta 1000 --patience 2
  expect_line '^stopped after epoch 3 of 60, on all ranks' # the first epoch is an improvement in any case
}

cross_validation() {
  two
  expect_line '^fold 0: 1023 samples, [0-9.]+ % right on the other 513$'
  [ "$(grep -ac '^fold ' <<<"$output")" = 3 ] || wrong 'three folds have three lines'
  expect_line '^mean of the folds [89][0-9.]+; all models together on the test, ([89][0-9.]+|100) % right'
  two --folds 4 --epochs 1
  expect_line '^fold 3: 1152 samples, [0-9.]+ % right on the other 384$'
}

tracking() {
  two --epochs 2
  expect_line '^lowest loss [0-9.]+ at step [0-9]+'
  [ "$(grep -ac 'lowest loss' <<<"$output")" = 1 ] || wrong 'more than one process tracks'
  [ "$(wc -l <runs/tracking/logs/rings.csv)" = 49 ] || wrong 'the CSV file does not have a header and 48 rows'
  grep -q '"learning_rate"' runs/tracking/logs/rings.jsonl || wrong 'the rate is not logged'
  ls runs/tracking/logs/rings/events.out.tfevents.* >/dev/null || wrong 'event files are missing'
  run "$hortator" plot runs/tracking -o loss.svg
  expect_code 0
}

profiling() {
  two --active 2
  expect_line '^averaging gradients took'
  local rank
  for rank in 0 1; do
    grep -q 'hortator::all_reduce' "runs/profiling/profile/profile_$rank.json" || wrong "the trace of rank $rank has no all-reduce"
    [ "$(grep -o '"ProfilerStep#[0-9]*"' "runs/profiling/profile/profile_$rank.json" | sort -u | wc -l)" = 2 ] || wrong "the trace of rank $rank does not have two steps"
  done
}

small_weights() {
  two
  expect_line '^largest score in training [0-9]'
  expect_line '^with weights of 130 KiB in a quarter of that'
  [ "$(grep -ac '% right' <<<"$output")" = 3 ] || wrong 'the model does not report three times'
  expect_learned_each_time
  local bytes
  bytes=$(stat -c %s runs/small_weights/weights/model.safetensors)
  two --type float8
  [ "$(stat -c %s runs/small_weights/weights/model.safetensors)" -lt "$((bytes * 6 / 10))" ] || wrong 'the files are not smaller'
}

local_sgd() {
  two
  expect_learned
  expect_line '^ranks were apart before an average, and are equal at the end'
  local averages
  averages=$(loss)
  two --outer sparse
  expect_learned
  expect_line '^ranks were apart before an average, and are equal at the end'
  [ "$(loss)" != "$averages" ] || wrong 'the outer optimizer changes nothing'
  HORTATOR_ZERO_STAGE=2 HORTATOR_REPLICATE=2 two
  expect_learned
  expect_line '^ranks were apart before an average, and are equal at the end'
  expect_near "$averages" "$(loss)"
  two --local-steps 0
  expect_line '^ranks were equal before an average, and are equal at the end'
}

context_parallel() {
  last() { line 'last loss' | sed -E 's/.*last loss ([0-9.e-]+).*/\1/'; }
  HORTATOR_CONTEXT=2 two
  expect_line '^each rank had 32 of 64 tokens'
  local divided
  divided=$(last)
  HORTATOR_CONTEXT=2 HORTATOR_CONTEXT_ATTENTION=ring two --run-dir ring
  expect_near "$divided" "$(last)"
  one
  expect_line '^each rank had 64 of 64 tokens'
  expect_near "$divided" "$(last)"
}

pipeline_parallel() {
  last() { line 'last loss' | sed -E 's/.*last loss ([0-9.e-]+).*/\1/'; }
  HORTATOR_PIPELINE=2 two
  local along
  along=$(last)
  HORTATOR_PIPELINE=2 HORTATOR_PIPELINE_SCHEDULE=interleaved two --run-dir interleaved
  expect_near "$along" "$(last)"
  one
  expect_near "$along" "$(last)"
}

zero() {
  two --stage 0
  expect_learned
  local whole stage
  whole=$(loss)
  for stage in 1 3; do
    two --stage "$stage" --run-dir "stage$stage"
    expect_near "$whole" "$(loss)"
  done
  read -r owned all < <(line 'rank 0 owns' | sed -E 's/.*owns ([0-9]+) of ([0-9]+) .*/\1 \2/')
  local excess=$((owned * 2 - all))
  [ "${excess#-}" -le 64 ] || wrong "rank 0 owns $owned of $all"
  [ "$(stat -c %s stage3/weights/model.safetensors)" -gt $((all * 4)) ] || wrong 'the saved weights are not whole'
}

tensor_parallel() {
  two --tensor 1
  expect_learned
  local whole
  whole=$(loss)
  two --tensor 2 --run-dir divided
  expect_near "$whole" "$(loss)"
  read -r held all < <(line 'rank 0 holds' | sed -E 's/.*holds ([0-9]+) of ([0-9]+) .*/\1 \2/')
  [ "$((held * 2))" -lt "$((all * 11 / 10))" ] || wrong "rank 0 holds $held of $all"
  [ "$(stat -c %s divided/weights/model.safetensors)" -gt $((all * 4)) ] || wrong 'the saved weights are not whole'
  two --tensor 2 --stage 3
  expect_near "$whole" "$(loss)"
  run "${launcher[@]}" "$program" --tensor 2 --width 31
  expect_code 2
  run "${launcher[@]}" "$program" --tensor 3
  expect_code 2
}

mixture_of_experts() {
  last() { line 'last loss' | sed -E 's/.*last loss ([0-9.e-]+), .*/\1/'; }
  two --experts 1
  local whole all
  whole=$(last)
  awk -v loss="$whole" 'BEGIN { exit !(loss < 0.5) }' || wrong 'it has not learned'
  awk -v balance="$(line 'last loss' | sed -E 's/.*balance ([0-9.]+) .*/\1/')" 'BEGIN { exit !(balance < 2.4) }' || wrong 'some experts are preferred'
  two --experts 2 --run-dir divided
  expect_near "$whole" "$(last)"
  read -r held all < <(line 'rank 0 holds' | sed -E 's/.*holds ([0-9]+) of ([0-9]+) .*/\1 \2/')
  [ "$((held * 2))" -lt "$((all * 11 / 10))" ] || wrong "rank 0 holds $held of $all"
  [ "$(stat -c %s divided/weights/model.safetensors)" -gt $((all * 4)) ] || wrong 'the saved weights are not whole'
  run "${launcher[@]}" "$program" --experts 3
  expect_code 2
}

offload() {
  two --scratch "$scratch"
  local offloaded
  offloaded=$(loss)
  two --in-memory
  expect_near "$offloaded" "$(loss)"
  touch nowhere
  run "${launcher[@]}" "$program" --scratch "$scratch/nowhere"
  [ "$code" != 0 ] || wrong 'a file is accepted as the scratch folder'
  expect_line 'nowhere'
}

uneven_inputs() {
  two
  expect_learned
  expect_line '^batches: from 138 to 138 on a rank' # 1500 samples are 46 batches, 23 of each rank: the last one is smaller
  expect_line '^samples: 9000 in 6 epochs of 1500'
  two --samples 1000 --batch-size 64
  expect_line '^batches: from 48 to 48 on a rank'
  two --samples 1000 --batch-size 68
  expect_line '^batches: from 42 to 48 on a rank'
  expect_line '^samples: 6000 in 6 epochs of 1000'
}

metrics() {
  two
  expect_line '^[0-9]+ of 301 samples right'
  local two_ranks
  two_ranks=$(line 'samples right')
  one
  [ "$(line 'samples right')" = "$two_ranks" ] || wrong "one rank counts otherwise than two: $two_ranks"
}

batch_size_search() {
  two --fits 200
  [ "$(grep -a '^tries' <<<"$output" | tr '\n' ' ')" = 'tries 512 tries 384 tries 288 tries 216 tries 162 ' ] || wrong 'other sizes were tried'
  expect_line '^batches of 162 fit on all ranks'
  expect_learned
}

schedule_free() {
  two --epochs 6 --run-dir whole
  expect_learned
  local whole
  whole=$(loss)
  two --epochs 3
  two --epochs 6
  [ "$(loss)" = "$whole" ] || wrong "the resumed run differs from the whole one, $whole"
}

optimizers() { trains_each lion adafactor adamw-8bit; }
other_optimizers() { trains_each nadam radam lamb schedule-free signum; }
trains_each() {
  local which whole
  for which; do
    two --optimizer "$which" --stage 0 --run-dir "$which.0"
    expect_learned
    whole=$(loss)
    two --optimizer "$which" --stage 2 --epochs 4 --run-dir "$which.2"
    two --optimizer "$which" --stage 3 --run-dir "$which.2"
    expect_near "$whole" "$(loss)"
  done
}

forces() {
  local error without
  two --run-dir forces
  error=$(sed -nE 's/^error of the forces ([0-9.e-]+)$/\1/p' <<<"$output")
  two --run-dir energies --force-weight 0
  without=$(sed -nE 's/^error of the forces ([0-9.e-]+)$/\1/p' <<<"$output")
  awk -v error="$error" -v without="$without" 'BEGIN { exit !(error != "" && error < 0.3 && 1.5 * error < without) }' ||
    wrong "the error of the forces is $error, and $without without them in the loss"
}

ema() {
  two --run-dir whole
  expect_learned
  local whole
  whole=$(loss)
  two --stage 3 --epochs 4 --run-dir halves
  two --stage 2 --run-dir halves
  expect_near "$whole" "$(loss)"
  [ -e whole/averaged/model.safetensors ] || wrong 'the averaged weights were not saved'
}

protection() {
  two --protect skip
  expect_line '^3 of 144 updates skipped'
  expect_line 'update 40 is skipped on all ranks'
  expect_learned
  two --protect rollback --run-dir returned
  expect_line '^3 of 144 updates skipped, 3 rollbacks'
  expect_learned
  run "${launcher[@]}" "$program" --protect stop --run-dir stopped
  expect_code 1
  expect_line 'Update 40 has a loss or gradient that is not finite'
}

big_model_inference() {
  two --memory-kib 300
  awk -v memory="$(line 'pages read' | sed 's/ KiB.*//')" -v disk="$(line 'pages read' | sed -E 's/.*, ([0-9]+) KiB on disk.*/\1/')" \
    'BEGIN { exit !(memory > 0 && disk > memory) }' || wrong 'the model is not mostly on disk'
  local paged
  paged=$(line 'mean score')
  two --memory-kib 0
  expect_line ' 0 KiB on disk, 0 pages read'
  [ "$(line 'mean score')" = "$paged" ] || wrong "a model in memory answers otherwise: $paged"
}

activation_memory() {
  two
  expect_line '^0 KiB'
  local plain rounded
  plain=$(line '^last loss')
  two --recompute
  expect_line '^6 layers are recomputed'
  [ "$(line '^last loss')" = "$plain" ] || wrong "recomputing changes the loss $plain"
  two --spill
  expect_no_line '^0 KiB'
  [ "$(line '^last loss')" = "$plain" ] || wrong "spilling changes the loss $plain"
  two --bf16
  rounded=$(line '^last loss')
  [ "$rounded" != "$plain" ] || wrong 'rounding changes nothing, so the comparison shows nothing'
}

collectives() {
  two
  expect_line '^points: 301$'
  expect_line '^of rank 0: 151$'
  expect_line '^type: Float$'
  local radii
  radii=$(line '^mean radii')
  one
  expect_line '^of rank 0: 301$'
  expect_near "$(sed -E 's/[^0-9.]*([0-9.]+).*/\1/' <<<"$radii")" "$(line '^mean radii' | sed -E 's/[^0-9.]*([0-9.]+).*/\1/')"
}

communication_hook() {
  two
  expect_learned
  local rounded
  rounded=$(loss)
  two --plain
  expect_learned
  [ "$(loss)" != "$rounded" ] || wrong 'the hook changes nothing, so it was not called'
  local whole
  whole=$(loss)
  two --power-sgd 2
  expect_learned
  [ "$(loss)" != "$whole" ] || wrong 'PowerSGD changes nothing, so it was not used'
}

reproducible() {
  two
  expect_learned
  local bits
  bits=$(line '^parameters')
  one
  [ "$(line '^parameters')" = "$bits" ] || wrong "one rank has other bits: $bits"
  two --plain
  [ "$(line '^parameters')" != "$bits" ] || wrong 'a plain run has the same bits, so the comparison shows nothing'
}

"$name"

run "$program" --help
expect_code 0
expect_line "^usage: $name "
expect_line '^  --run-dir TEXT'
run "$program" --unknown
expect_code 2
expect_line "Unknown option '--unknown'"
