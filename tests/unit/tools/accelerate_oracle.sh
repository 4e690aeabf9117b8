#!/usr/bin/env bash
# accelerate_oracle.sh HORTATOR: the launcher of Python's Accelerate reads the files of accelerate_files, and files with random answers, as Hortator
# does. Skipped if Python does not have Accelerate 1.15. HORTATOR_TEST_PYTHON selects the Python.
set -euo pipefail
hortator=$1 here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$here/../../..
python=${HORTATOR_TEST_PYTHON:-python3}
# the modules that the set-up has downloaded, where this Python can load them
if [ -d "$root/.deps/model-tools" ]; then export PYTHONPATH=$root/.deps/model-tools:$root/.deps/libtorch${PYTHONPATH:+:$PYTHONPATH}; fi
"$python" -c 'import accelerate; exit(not accelerate.__version__.startswith("1.15"))' 2>/dev/null ||
  { echo "skipped: $python does not have accelerate 1.15"; exit 77; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export HF_HOME=$folder/no_settings
"$python" "$here/../../tools/accelerate-random-files.py" "$folder" 150 7
"$python" "$here/../../tools/accelerate-launch.py" "$hortator" "$here"/accelerate_files/*.yaml "$here/accelerate_files/alst.yml" \
  "$here/accelerate_files/default_config.json" "$folder"/*.yaml
