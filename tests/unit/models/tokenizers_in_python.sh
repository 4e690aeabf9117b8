#!/usr/bin/env bash
# tokenizers_in_python.sh TEST_PROGRAM COUNT [ROUNDS [NAME...]]: lets Python's tokenizers encode COUNT random texts with each of several tokenizers, or with
# these, and compares; that many times, each with other texts. Skipped if Python does not have the module. HORTATOR_TEST_PYTHON selects the Python.
set -euo pipefail
program=$1 count=$2 rounds=${3:-1} here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
names=("${@:4}")
root=$here/../../..
python=${HORTATOR_TEST_PYTHON:-python3}
if [ -d "$root/.deps/model-tools" ]; then export PYTHONPATH=$root/.deps/model-tools${PYTHONPATH:+:$PYTHONPATH}; fi
"$python" -c 'import tokenizers' 2>/dev/null || { echo "skipped: $python does not have the module tokenizers"; exit 77; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
for round in $(seq "$rounds"); do
  "$python" "$here/tokenizer_oracle.py" "$folder" "$round" "$count" "${names[@]}"
  HORTATOR_TOKENIZER_CASES=$folder "$program" '[python]'
  if [ "$rounds" -gt 1 ]; then echo "$((round * count)) texts of each tokenizer are the same"; fi
done
