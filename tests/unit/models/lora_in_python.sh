#!/usr/bin/env bash
# lora_in_python.sh TEST_PROGRAM COUNT: lets Python's peft compute COUNT random adapters, compares outputs and gradients, and checks that peft
# computes the same with the adapters that Hortator writes. Skipped if Python does not have the modules. HORTATOR_TEST_PYTHON selects the Python.
set -euo pipefail
program=$1 count=$2 here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$here/../../..
python=${HORTATOR_TEST_PYTHON:-python3}
if ! "$python" -c 'import torch' 2>/dev/null; then export PYTHONPATH=$root/.deps/libtorch${PYTHONPATH:+:$PYTHONPATH}; fi
for module in torch transformers peft safetensors; do
  "$python" -c "import $module" 2>/dev/null || { echo "skipped: $python does not have the module $module"; exit 77; }
done
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$python" "$here/lora_oracle.py" write "$folder" "${HORTATOR_TEST_SEED:-1000}" "$count"
HORTATOR_LORA_CASES=$folder "$program"
"$python" "$here/lora_oracle.py" check "$folder"
