#!/usr/bin/env bash
# Prints how the sources are built, figure by figure with its bar: files a folder, functions, sources, words, duplicates. Exit code 1: a bar
# is missed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
command -v python3 >/dev/null || { echo 'skipped: python3 is not installed'; exit 0; }
exec python3 tests/tools/house.py
