#!/usr/bin/env bash
# h5py.sh PROGRAM SCRIPT COMMAND...: h5py reads every dataset of checkpoints that COMMAND PROGRAM writes, in one file and
# through the view of several, and finds the same. Skipped where no Python has h5py; HORTATOR_TEST_PYTHON names one that has.
set -euo pipefail
program=$1 script=$2
shift 2
python=''
for one in "${HORTATOR_TEST_PYTHON:-}" python3 /usr/bin/python3; do # the system's has the system's packages
  if [ -n "$one" ] && "$one" -c 'import h5py' 2>/dev/null; then python=$one; break; fi
done
[ -n "$python" ] || { echo 'skipped: no Python here has h5py'; exit 77; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
"$@" "$program" '[.for_h5py]'
"$python" "$script" for_h5py/expected for_h5py/one/state.h5 for_h5py/several/view.h5
