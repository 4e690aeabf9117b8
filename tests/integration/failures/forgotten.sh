#!/usr/bin/env bash
# forgotten.sh COMMAND...: a successful run leaves no failure.json and removes that of an earlier run.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
mkdir -p runs/failing
touch runs/failing/failure.json runs/failing/.failure-earlier runs/failing/log.jsonl
"$@"
left=$(ls -A runs/failing)
[ "$left" = $'log.jsonl\noutcome.json' ] || { echo "unexpected files in the run folder: $left" >&2 && exit 1; }
rm -r runs
"$@"
[ "$(ls -A runs/failing)" = outcome.json ] || { echo 'a run without other files left more than outcome.json' >&2 && exit 1; }
