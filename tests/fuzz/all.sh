#!/usr/bin/env bash
# all.sh BUILD RUNS [NAME...]: runs each fuzz target of a build, or these (chat_template, ...), with that many inputs, one after the other. Prints a
# line for each, with the edges of code that its inputs have reached, and the sum; its output is in BUILD/tests/work/fuzz_NAME/all.log.
set -euo pipefail
build=$1 runs=$2
shift 2
commands() {
  ctest --test-dir "$build" -L fuzz --show-only=json-v1 | python3 -c '
import json, shlex, sys
for test in json.load(sys.stdin)["tests"]:
    folder = next(one["value"] for one in test["properties"] if one["name"] == "WORKING_DIRECTORY")
    print(test["name"].removeprefix("fuzz."), shlex.quote(folder), shlex.join(test["command"]))'
}
failed=0 sum=0
while read -r name folder command; do
  if [ $# -gt 0 ] && [[ " $* " != *" $name "* ]]; then continue; fi
  code=0
  (cd "$folder" && HORTATOR_FUZZ_RUNS=$runs bash -c "$command" >all.log 2>&1) || code=$?
  inputs=$(grep -a number_of_executed_units "$folder/all.log" | awk '{ print $2 }')
  edges=$(sed -n 's/^#[0-9]*.*[[:space:]]cov: \([0-9]*\).*/\1/p' "$folder/all.log" | tail -1)
  echo "$name: exit code $code, ${inputs:-0} inputs, ${edges:-0} edges"
  sum=$((sum + ${inputs:-0}))
  [ "$code" = 0 ] || failed=1
done < <(commands)
echo "$sum inputs"
exit $failed
