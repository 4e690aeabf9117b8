#!/usr/bin/env bash
# weights_in_python.sh TEST_PROGRAM SCRIPT SCRIPT_OF_TRANSFORMERS: what save_model wrote is read by safetensors, accelerate and torch,
# and by transformers where that is. Skipped where Python has them not; HORTATOR_TEST_PYTHON names one that has.
set -euo pipefail
program=$1 script=$2 transformers=$3
python=${HORTATOR_TEST_PYTHON:-python3}
command -v "$python" >/dev/null || { echo "skipped: there is no $python"; exit 77; }
for module in torch safetensors accelerate; do
  "$python" -c "import $module" 2>/dev/null || { echo "skipped: $python has no $module"; exit 77; }
done

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
mpirun -n 2 "$program" '[.for_python]'
"$python" "$script" check for_python
"$python" -c 'import transformers' 2>/dev/null || { echo "without transformers: $python has none"; exit 0; }
"$python" "$transformers" write transformers
mpirun -n 2 "$program" '[.transformers]'
"$python" "$transformers" check transformers
