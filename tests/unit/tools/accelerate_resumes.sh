#!/usr/bin/env bash
# accelerate_resumes.sh TEST_PROGRAM HORTATOR SCRIPT: trains five steps, exports the checkpoint for Accelerate, and resumes in
# Python: the next five losses are those of the run that continued in C++. Skipped if Python does not have accelerate.
# HORTATOR_TEST_PYTHON selects the Python.
set -euo pipefail
program=$1 hortator=$2 script=$3
python=${HORTATOR_TEST_PYTHON:-python3}
command -v "$python" >/dev/null || { echo "skipped: $python was not found"; exit 77; }
for module in torch safetensors accelerate; do
  "$python" -c "import $module" 2>/dev/null || { echo "skipped: $python does not have the module $module"; exit 77; }
done

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
for ranks in 1 2; do
  mpirun -n $ranks "$program" '[.for_accelerate]'
  "$hortator" checkpoint export trained_$ranks --to accelerate python_$ranks
  "$python" "$script" python_$ranks expected_$ranks.json
done
