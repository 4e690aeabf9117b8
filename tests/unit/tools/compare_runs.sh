#!/usr/bin/env bash
# compare_runs.sh HORTATOR RECORDED SHARE_PYTHON PYTHONPATH: a step of PyTorch and the same one of C++ do not differ, and each of 50 faults of one
# unit in the last place is named at its operator.
set -euo pipefail
# shellcheck source=tests/setup/support.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../setup/support.sh"
hortator=$1 recorded=$2 share_python=$3
tests=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cd "$scratch"
PYTHONPATH=$4 python3 "$tests/recorded.py" "$share_python" python || exit $?
faults=50
HORTATOR_LOG_LEVEL=error "$recorded" cpp $faults >expected
[ "$(wc -l <expected)" = $faults ] || wrong 'the step has too few operators'

run "$hortator" compare-runs cpp/reference python
expect_code 0
expect_line '^no difference in what both have computed$'
named=0
while read -r call; do
  code=0
  "$hortator" compare-runs python "cpp/fault-$named" >found || code=$?
  [ "$code" = 1 ] || wrong "fault $named: exit code $code"
  [ "$(sed -n '/^first difference:/{n;s/^  //p}' found)" = "$call" ] || wrong "fault $named in $call: $(cat found)"
  named=$((named + 1))
done <expected
[ "$named" = $faults ] || wrong "only $named faults were compared"

run "$hortator" compare-runs python
expect_code 2
run "$hortator" compare-runs python cpp
expect_code 2

# nothing in common is not agreement
mkdir other
printf '%s\n' '{"hortator_operators": 1, "step": 1, "rank": 0, "ranks": 1}' \
  '{"op": "aten::mm", "path": "x", "near": "x", "backward": false, "in": [], "out": []}' '{"operators": 1}' >other/rank-00000.jsonl
run "$hortator" compare-runs python other
expect_code 1
expect_line '^no operator is in both'
run "$hortator" compare-runs python python --rounding=-1
expect_code 2
expect_line '[-]-rounding: expected a number from 0, got -1'
