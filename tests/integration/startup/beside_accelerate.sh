#!/usr/bin/env bash
# beside_accelerate.sh FOLDER HORTATOR: the time from the start of two ranks to the end of their first step is at most a quarter of that with
# `accelerate launch`. HORTATOR_TEST_PYTHON names a Python with torch and accelerate.
set -euo pipefail
folder=$1 hortator=$2
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
python=${HORTATOR_TEST_PYTHON:-python3}
"$python" -c 'import accelerate, torch' 2>/dev/null || { echo "skipped: $python has no accelerate (set HORTATOR_TEST_PYTHON to one that has)"; exit 77; }
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"
export ACCELERATE_USE_CPU=true HF_HOME=$scratch
timing=$("$folder/launch_time" 5 "$hortator" "$folder/first_step" "$python" -m accelerate.commands.launch --multi_gpu --num_processes 2 \
  --num_machines 1 --mixed_precision no --dynamo_backend no --main_process_port $((20000 + $$ % 20000)) "$here/../../tools/accelerate-first-step.py" 2>log |
  grep '^{') || { cat log; exit 1; }
echo "$timing"
ratio=$(sed -nE 's/.*"reference": "Accelerate".*"ratio": ([0-9.]+).*/\1/p' <<<"$timing")
awk -v r="$ratio" 'BEGIN { exit !(r > 0 && r <= 0.25) }' || { echo "failed: start-up takes $ratio of Accelerate's time, expected at most 0.25"; exit 1; }
