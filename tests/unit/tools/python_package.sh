#!/usr/bin/env bash
# python_package.sh HORTATOR SLEEPING CHECKPOINT_TEST ROOT COMMAND...: the package of share/python, installed from the tree, reads a run, a sweep, a
# study and checkpoints of all types, and the notebook runs. COMMAND starts CHECKPOINT_TEST on several ranks. Skipped where no Python has pandas;
# HORTATOR_TEST_PYTHON names one that has.
set -u
hortator=$1 sleeping=$2 checkpoint_test=$3 root=$4
shift 4
start=("$@")
python=''
for one in "${HORTATOR_TEST_PYTHON:-}" python3 /usr/bin/python3; do
  if [ -n "$one" ] && "$one" -c 'import numpy, pandas' 2>/dev/null; then python=$(command -v "$one"); break; fi
done
[ -n "$python" ] || { echo 'skipped: no Python here has pandas (apt-get install python3-pandas)'; exit 77; }
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/unit/tools/support.sh
. "$here/support.sh"

# Installed as a user does it, where pip and setuptools are at hand without a network; otherwise as it lies in the tree.
cp -r "$root/share/python" source
if "$python" -m pip install --quiet --no-index --no-build-isolation --no-deps --target installed ./source >pip.log 2>&1; then
  export PYTHONPATH=$work/installed
  echo 'the package was installed by pip'
else
  export PYTHONPATH=$work/source
  echo "the package was not installed: $(tail -n 1 pip.log)"
fi

HORTATOR_RUN_DIR=$work/runs/a run launch -n 2 "$sleeping" weak 40 30; code_is 0
for task in 0 1; do
  HORTATOR_RUN_DIR=$work/runs/sweep/$task run launch -n 1 "$sleeping" weak $((10 + task)) 10; code_is 0
  echo "{\"arguments\": {\"--lr\": \"0.$((task + 1))\"}}" >"runs/sweep/$task/task.json"
done
run scale weak --ranks 1,2 --repeats 2 --out runs/study -- "$sleeping" weak 20 10; code_is 0
"${start[@]}" "$checkpoint_test" '[.for_h5py]' >checkpoint.log 2>&1 || wrong "no checkpoints: $(tail -n 5 checkpoint.log)"
HORTATOR=$hortator "$python" "$here/python_package.py" "$work" || wrong 'the package reads something else'

# The notebook, cell by cell, on this study.
if "$python" -c 'import matplotlib' 2>/dev/null; then
  HORTATOR_STUDY=$work/runs/study HORTATOR_SWEEP=$work/runs/sweep HORTATOR_RUN=$work/runs/a MPLBACKEND=agg \
    "$python" "$here/notebook.py" "$root/share/python/study.ipynb" || wrong 'the notebook fails'
else
  echo 'the notebook was not run: this Python does not have matplotlib'
fi

[ "$failures" = 0 ] || { echo "$failures wrong"; exit 1; }
