#!/usr/bin/env bash
# gguf_in_python.sh TEST_PROGRAM COUNT: lets llama.cpp's Python package write COUNT random files of all types, and compares. Skipped if Python does
# not have the modules. HORTATOR_TEST_PYTHON selects the Python.
set -euo pipefail
program=$1 count=$2 here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$here/../../..
python=${HORTATOR_TEST_PYTHON:-python3}
# the modules that the set-up has downloaded
if [ -d "$root/.deps/model-tools" ]; then export PYTHONPATH=$root/.deps/model-tools${PYTHONPATH:+:$PYTHONPATH}; fi
for module in gguf safetensors; do
  "$python" -c "import $module" 2>/dev/null || { echo "skipped: $python does not have the module $module"; exit 77; }
done
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
for seed in $(seq "$count"); do
  "$python" "$here/gguf_oracle.py" "$folder" "$seed"
  HORTATOR_GGUF_CASE=$folder "$program" '[gguf-types]'
done
