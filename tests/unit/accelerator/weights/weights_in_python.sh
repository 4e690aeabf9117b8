#!/usr/bin/env bash
# weights_in_python.sh TEST_PROGRAM SCRIPT SCRIPT_OF_TRANSFORMERS: checks that safetensors, accelerate and torch read what
# save_model writes, and transformers if it is installed. Skipped if Python does not have the modules.
# HORTATOR_TEST_PYTHON selects the Python.
set -euo pipefail
program=$1 script=$2 transformers=$3
python=${HORTATOR_TEST_PYTHON:-python3}
command -v "$python" >/dev/null || { echo "skipped: $python was not found"; exit 77; }
for module in torch safetensors accelerate; do
  "$python" -c "import $module" 2>/dev/null || { echo "skipped: $python does not have the module $module"; exit 77; }
done

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
mpirun -n 2 "$program" '[.for_python]'
"$python" "$script" check for_python
"$python" -c 'import transformers' 2>/dev/null || { echo "$python does not have transformers: its check is left out"; exit 0; }
"$python" "$transformers" write transformers
mpirun -n 2 "$program" '[.transformers]'
"$python" "$transformers" check transformers
