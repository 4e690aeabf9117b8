#!/bin/bash
# measured.sh BIN MPIEXEC...: for each configuration and rank, the peak memory that a rehearsal reports is that which the
# run itself counts, within 3 %.
# shellcheck source=tests/integration/rehearsal/common.sh
. "$(dirname "$0")/common.sh"
launch=("$@")
small=("${language_model[@]}" --batch-size 12 --steps 3)

# compare RANKS [NAME=VALUE...] -- PROGRAM...
compare() {
  local ranks=$1 variables=()
  shift
  while [[ $1 != -- ]]; do
    variables+=("$1")
    shift
  done
  shift
  rm -rf run memory.*
  if ! env "${variables[@]}" HORTATOR_MEMORY_REPORT="$work/memory" "${launch[@]}" "$ranks" "$@" >run.log 2>&1; then
    tail -5 run.log
    fail "the run itself: ${variables[*]} $ranks ranks"
    return
  fi
  local all
  all=$(seq -s, 0 $((ranks - 1)))
  env "${variables[@]}" "$bin/hortator" rehearse -n "$ranks" --rank "$all" --json -- "$@" >rehearsal.json ||
    fail "the rehearsal: ${variables[*]} $ranks ranks"
  python3 - "$ranks" "${variables[*]} ${*: -4}" <<'END' || fails=$((fails + 1))
import json, sys
rehearsed = json.load(open("rehearsal.json"))["rehearsed"]
worst = 0
for rank in range(int(sys.argv[1])):
    measured = json.load(open(f"memory.{rank}"))["memory"]["peak"]
    worst = max(worst, abs(rehearsed[rank].get("memory", {}).get("peak", 0) / measured - 1))
    if rehearsed[rank].get("computed_in_full"):
        print("computed in full:", rehearsed[rank]["computed_in_full"])
print(f"{sys.argv[1]} ranks, {sys.argv[2]}: off by {100 * worst:.2f} %")
sys.exit(worst > 0.03)
END
}

compare 1 A=1 -- "${small[@]}"
compare 1 A=1 -- "${small[@]}" --recompute
compare 1 A=1 -- "${small[@]}" --precision bf16
compare 1 A=1 -- "${small[@]}" --lora 8
for ranks in 2 3 4; do
  for zero in 0 1 2 3; do compare $ranks A=1 -- "${small[@]}" --zero $zero; done
done
compare 2 A=1 -- "${small[@]}" --tensor 2
compare 4 A=1 -- "${small[@]}" --tensor 4 --precision bf16
compare 4 A=1 -- "${small[@]}" --tensor 2 --zero 3
compare 2 A=1 -- "${small[@]}" --context 2
compare 4 A=1 -- "${small[@]}" --context 2 --tensor 2
compare 4 A=1 -- "${small[@]}" --context 4 --recompute
compare 2 A=1 -- "${small[@]}" --pipeline 2
compare 4 A=1 -- "${small[@]}" --pipeline 4
compare 4 A=1 -- "${small[@]}" --pipeline 2 --tensor 2
compare 4 A=1 -- "${small[@]}" --pipeline 2 --zero 1
compare 2 HORTATOR_PIPELINE_SCHEDULE=gpipe -- "${small[@]}" --pipeline 2
compare 2 HORTATOR_PIPELINE_SCHEDULE=interleaved -- "${small[@]}" --pipeline 2
compare 2 HORTATOR_ZERO_STAGE=0 -- "${gpt[@]}"
compare 4 HORTATOR_ZERO_STAGE=3 -- "${gpt[@]}"
compare 2 HORTATOR_TENSOR=2 -- "${gpt[@]}"
compare 2 HORTATOR_MIXED_PRECISION=bf16 -- "${gpt[@]}"
compare 2 HORTATOR_GRADIENT_ACCUMULATION_STEPS=2 HORTATOR_GRADIENT_CLIPPING=1 -- "${gpt[@]}"
exit $((fails > 0))
