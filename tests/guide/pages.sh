#!/usr/bin/env bash
# pages.sh ARGUMENT...: runs pages.py. Exit code 77 if there is no Python.
set -euo pipefail
command -v python3 >/dev/null || { echo 'skipped: python3 is not installed'; exit 77; }
exec python3 "$(dirname "${BASH_SOURCE[0]}")/pages.py" "$@"
