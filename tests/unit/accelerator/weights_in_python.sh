#!/usr/bin/env bash
# weights_in_python.sh TEST_PROGRAM SCRIPT: what save_model wrote is read by safetensors, accelerate and torch. Skipped
# where Python has them not; HORTATOR_TEST_PYTHON names one that has.
set -euo pipefail
program=$1
script=$2
python=${HORTATOR_TEST_PYTHON:-python3}
command -v "$python" >/dev/null || { echo "skipped: there is no $python"; exit 77; }
for module in torch safetensors accelerate; do
  "$python" -c "import $module" 2>/dev/null || { echo "skipped: $python has no $module"; exit 77; }
done

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
mpirun -n 2 "$program" '[written_by_python]'
"$python" "$script" check for_python
