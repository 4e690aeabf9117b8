#!/usr/bin/env bash
# torchvision.sh TEST_PROGRAM COUNT: lets Python's torchvision transform COUNT sets of random images, and compares. Skipped if Python does not have
# the modules. HORTATOR_TEST_PYTHON selects the Python.
set -euo pipefail
program=$1 count=$2 here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$here/../../../..
python=${HORTATOR_TEST_PYTHON:-python3}
# the modules that the set-up has downloaded, where this Python can load them
if [ -d "$root/.deps/model-tools" ]; then export PYTHONPATH=$root/.deps/model-tools:$root/.deps/libtorch${PYTHONPATH:+:$PYTHONPATH}; fi
for module in torch torchvision safetensors; do
  "$python" -c "import $module" 2>/dev/null || { echo "skipped: $python does not have the module $module"; exit 77; }
done
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
for seed in $(seq "$count"); do
  "$python" "$here/oracle.py" "$folder/cases.safetensors" "$seed"
  HORTATOR_TORCHVISION_CASES=$folder/cases.safetensors "$program" '[torchvision]'
done
