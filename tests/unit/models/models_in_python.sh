#!/usr/bin/env bash
# models_in_python.sh TEST_PROGRAM COUNT: lets Python's transformers compute COUNT random cases of each architecture, compares, and checks
# that transformers loads what was saved. Skipped if Python does not have the modules. HORTATOR_TEST_PYTHON selects the Python.
set -euo pipefail
program=$1 count=$2 here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$here/../../..
python=${HORTATOR_TEST_PYTHON:-python3}
# the modules that the set-up has downloaded, where this Python can load them
if [ -d "$root/.deps/model-tools" ]; then export PYTHONPATH=$root/.deps/model-tools:$root/.deps/libtorch${PYTHONPATH:+:$PYTHONPATH}; fi
for module in torch transformers safetensors; do
  "$python" -c "import $module" 2>/dev/null || { echo "skipped: $python does not have the module $module"; exit 77; }
done
families='llama mistral mixtral qwen2 qwen3 gpt2 bert distilbert resnet vit'
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
# shellcheck disable=SC2086
"$python" "$here/oracle.py" "$folder" 1000 "$count" $families
if "$python" -c 'import torchvision' 2>/dev/null; then "$python" "$here/oracle.py" "$folder" 1000 1 resnet18 resnet34 resnet50 resnet101; fi
"$python" "$here/beam_oracle.py" "$folder" 10
HORTATOR_MODEL_CASES=$folder "$program"
