#!/usr/bin/env bash
# pairs.sh ROOT: runs pairs.py. Exit code 77 if there is no Python.
set -euo pipefail
command -v python3 >/dev/null || { echo 'skipped: python3 is not installed'; exit 77; }
exec python3 "$(dirname "${BASH_SOURCE[0]}")/pairs.py" "$@"
