#!/bin/bash
# plan.sh BIN: what a plan recommends runs in a rehearsal and fits; what does not fit is not recommended.
# shellcheck source=tests/integration/rehearsal/common.sh
. "$(dirname "$0")/common.sh"

program=("$bin/gpt" --text text.txt --steps 3 --batch-size 32 --cpu --run-dir run)
cat >machine.json <<'END'
{"name": "test", "ranks_per_node": 4, "memory": 1000000000, "flops_fp32": 1e12, "flops_16bit": 4e12,
 "within_node": {"bytes_per_second": 1e10, "latency": 1e-6}, "between_nodes": {"bytes_per_second": 1e9, "latency": 1e-5},
 "disk_bytes_per_second": 1e9}
END
"$bin/hortator" plan -n 8 --machine machine.json --rehearse 4 --json -- "${program[@]}" >plan.json || fail "a plan that fits"
"$bin/hortator" plan -n 8 --machine machine.json --rehearse 2 --why tensor -- "${program[@]}" >plan.txt || fail "the plan's text"
grep -q "hortator launch --nodes 2 --ranks-per-node 4" plan.txt || fail "no launch line: $(cat plan.txt)"
sed 's/"ranks_per_node": 4/"ranks_per_node": 3/' machine.json >threes.json
"$bin/hortator" plan -n 4 --machine threes.json --rehearse 1 -- "${program[@]}" >four.txt || fail "a plan of four ranks"
grep -q "hortator launch -n 4" four.txt || fail "four ranks are no whole nodes of three: $(cat four.txt)"
grep -qE "^(tensor|the best run with tensor)" plan.txt || fail "no answer to --why: $(cat plan.txt)"
python3 - <<'END' || fail "the plan: $(cat plan.json)"
import json
plan = json.load(open("plan.json"))
best = plan["best"]
assert best and all(run["rehearsed"] and run["memory"]["total"] <= 1e9 for run in best)
assert all(run["data"] * run["tensor"] * run["context"] * run["pipeline"] == 8 for run in best)
assert [run["throughput"] for run in best] == sorted((run["throughput"] for run in best), reverse=True)
END
code=0
"$bin/hortator" plan -n 8 --machine machine.json --memory 1MB --rehearse 2 -- "${program[@]}" >none.txt || code=$?
[[ $code == 1 ]] || fail "a plan that does not fit: exit code $code"
grep -q "No run fits" none.txt || fail "no reason: $(cat none.txt)"
"$bin/hortator" plan -n 8 --machine text.txt -- "${program[@]}" 2>bad.txt && fail "a bad machine file"
grep -q "text.txt: the file is not a JSON object" bad.txt || fail "a bad machine file: $(cat bad.txt)"
"$bin/hortator" plan -- "${program[@]}" 2>bad.txt && fail "no size"
grep -q "either --ranks or --nodes" bad.txt || fail "no size: $(cat bad.txt)"

# What runs here takes the memory that was predicted, to the byte; where there are fewer ranks, with fewer for batches.
long=("$bin/gpt" --text text.txt --steps 60 --batch-size 16 --cpu --run-dir run)
"$bin/hortator" plan -n 16 --machine machine.json --rehearse 2 --check --json -- "${long[@]}" >check.json ||
  fail "a plan that is checked: $(cat check.json)"
python3 - <<'END' || fail "the check: $(cat check.json)"
import json, os
checked = json.load(open("check.json"))["checked"]
assert 1 <= len(checked) <= 3, checked
ran = [run for run in checked if "measured" in run]
assert ran, checked
for run in ran:
    assert run["ranks"] <= os.cpu_count(), run
    assert abs(run["measured"]["bytes"] / run["predicted"]["bytes"] - 1) < 0.01, run
    assert run["measured"]["seconds"] > 0 and run["predicted"]["seconds"] > 0, run
END
[[ ! -e run/status ]] || fail "the check wrote into the program's own run folder"
code=0
cat >failing <<END
#!/bin/sh
[ -n "\$HORTATOR_REHEARSE" ] || exit 3
exec ${long[*]}
END
chmod +x failing
"$bin/hortator" plan -n 2 --machine machine.json --rehearse 1 --check -- ./failing >failing.txt || code=$?
[[ $code == 1 ]] || fail "exit code $code where a run fails in the check"
grep -q "failed, exit code 3" failing.txt || fail "no failure in the check: $(cat failing.txt)"
exit $((fails > 0))
