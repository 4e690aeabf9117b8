#!/usr/bin/env bash
# in_python.sh compare|train PROGRAM LAUNCHER...: exports models with Python, and compares the example program `exported` with it. Skipped if
# Python does not have torch and safetensors; models of torchvision and transformers are left out where they are missing. HORTATOR_TEST_PYTHON
# selects the Python.
set -euo pipefail
check=$1 program=$2 here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
launcher=("${@:3}")
root=$here/../../..
python=${HORTATOR_TEST_PYTHON:-python3}
if [ -d "$root/.deps/libtorch" ]; then export PYTHONPATH=$root/.deps/model-tools:$root/.deps/libtorch${PYTHONPATH:+:$PYTHONPATH}; fi
for module in torch.export safetensors.torch; do
  "$python" -c "import $module" 2>/dev/null || { echo "skipped: $python does not have the module $module"; exit 77; }
done
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
if [ "$check" = compare ]; then
  "$python" "$here/compare.py" "$program" "$folder"
else
  "$python" "$here/train.py" "$program" "$folder" -- "${launcher[@]}"
fi
