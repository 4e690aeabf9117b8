#!/usr/bin/env bash
# arrow_files.sh PROGRAM COUNT [SEED]: new random Parquet and Arrow files have the rows that pyarrow reads from them.
set -euo pipefail
# shellcheck source=tests/setup/support.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../../setup/support.sh"
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
program=$1 count=$2 seed=${3:-$RANDOM}
echo "seed $seed"
command -v python3 >/dev/null || { echo 'skipped: python3 is not installed'; exit 77; }
cd "$scratch"
mkdir files
PYTHONPATH=$source_tree/.deps/model-packages python3 "$here/arrow_files.py" files "$seed" "$count"
ARROW_FILES=$PWD/files "$program" '[.arrow_files]' || wrong "the rows differ (seed $seed)"
