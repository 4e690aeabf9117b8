#!/usr/bin/env bash
# packed_in_python.sh TEST_PROGRAM: lets Python's bitsandbytes pack random weights and models, and compares bytes, values and logits; and reads by it
# what Hortator has saved. Skipped if Python does not have the modules. HORTATOR_TEST_PYTHON selects the Python.
set -euo pipefail
program=$1 here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
python=${HORTATOR_TEST_PYTHON:-python3}
if ! "$python" -c 'import torch' 2>/dev/null; then export PYTHONPATH=$here/../../../.deps/libtorch${PYTHONPATH:+:$PYTHONPATH}; fi
for module in torch bitsandbytes safetensors; do
  "$python" -c "import $module" 2>/dev/null || { echo "skipped: $python does not have the module $module"; exit 77; }
done
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
for seed in 1 2 3 4; do
  "$python" "$here/packed_oracle.py" "$folder/case.safetensors" "$seed"
  rm -rf "$folder/models"
  "$python" "$here/packed_models.py" write "$folder/models" "$seed"
  HORTATOR_PACKED_CASE=$folder/case.safetensors HORTATOR_PACKED_MODELS=$folder/models "$program"
  "$python" "$here/packed_models.py" check "$folder/models"
done
