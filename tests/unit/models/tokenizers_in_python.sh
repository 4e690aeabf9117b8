#!/usr/bin/env bash
# tokenizers_in_python.sh TEST_PROGRAM COUNT: lets Python's tokenizers encode COUNT random texts with each of several tokenizers, and compares.
# Skipped if Python does not have the module. HORTATOR_TEST_PYTHON selects the Python.
set -euo pipefail
program=$1 count=$2 here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$here/../../..
python=${HORTATOR_TEST_PYTHON:-python3}
if [ -d "$root/.deps/model-tools" ]; then export PYTHONPATH=$root/.deps/model-tools${PYTHONPATH:+:$PYTHONPATH}; fi
"$python" -c 'import tokenizers' 2>/dev/null || { echo "skipped: $python does not have the module tokenizers"; exit 77; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$python" "$here/tokenizer_oracle.py" "$folder" 1 "$count"
HORTATOR_TOKENIZER_CASES=$folder "$program" '[python]'
