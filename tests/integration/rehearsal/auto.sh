#!/bin/bash
# auto.sh BIN: a run with --parallel auto takes the settings that a plan finds best, records them, and takes them again.
# shellcheck source=tests/integration/rehearsal/common.sh
. "$(dirname "$0")/common.sh"

program=("$bin/gpt" --text text.txt --steps 4 --batch-size 16 --cpu --run-dir run)

# machine MEMORY: slow to send, so that more ranks for a sequence, and every stage of ZeRO, have different times
machine() {
  cat >machine.json <<END
{"name": "test", "ranks_per_node": 2, "memory": $1, "flops_fp32": 1e12, "flops_16bit": 4e12,
 "within_node": {"bytes_per_second": 1e10, "latency": 1e-6}, "between_nodes": {"bytes_per_second": 1e9, "latency": 1e-5},
 "disk_bytes_per_second": 1e9}
END
}

# launch [OPTION...]: two ranks, with the lines of both in output.log
launch() {
  code=0
  HORTATOR_MEMORY_REPORT="$work/memory" "$bin/hortator" launch -n 2 --parallel auto "$@" "${program[@]}" >output.log 2>&1 || code=$?
}

machine 1000000000
launch --plan-machine machine.json
[[ $code == 0 ]] || fail "exit code $code: $(cat output.log)"
[[ $(grep -c "parallel = auto: .* on 2 ranks, predicted" output.log) == 1 ]] || fail "not printed once: $(cat output.log)"
[[ $(grep -c "is rehearsed to find" output.log) == 1 ]] || fail "not planned: $(cat output.log)"
python3 - <<'END' || fail "the run does not have the plan's settings: $(cat output.log)"
import json
best = json.load(open("run/plan.json"))["best"][0]
for rank in range(2):
    report = json.load(open(f"memory.{rank}"))
    axes = report["axes"]
    print(best["settings"], axes, report["memory"]["peak"], best["memory"]["total"])
    assert axes["tensor"]["ranks"] == best["tensor"] and axes["context"]["ranks"] == best["context"]
    assert axes["shard"]["ranks"] == (2 if best["zero"] else 1)
    assert report["memory"]["peak"] <= 1.01 * best["memory"]["total"]
END

cp run/plan.json first.json
launch --plan-machine machine.json
[[ $code == 0 ]] || fail "exit code $code with a recorded plan"
grep -q "is rehearsed to find" output.log && fail "the recorded plan is not taken: $(cat output.log)"
grep -q "parallel = auto: .* on 2 ranks, predicted" output.log || fail "the recorded plan is not printed"
cmp -s first.json run/plan.json || fail "the recorded plan has changed"

rm -r run
machine 1000000
launch --plan-machine machine.json
[[ $code == 1 ]] || fail "exit code $code where nothing fits"
grep -q "nothing fits into the 976.6 KiB of each of 2 ranks; the smallest that was rehearsed, with .*, needs" output.log ||
  fail "no reason where nothing fits: $(cat output.log)"
[[ ! -e run/plan.json ]] || fail "a plan without a run was recorded"

launch --zero-stage 1
[[ $code == 2 ]] || fail "exit code $code for auto beside a setting"
grep -q "parallel = auto with HORTATOR_ZERO_STAGE=1" output.log || fail "auto beside a setting: $(cat output.log)"
exit $((fails > 0))
