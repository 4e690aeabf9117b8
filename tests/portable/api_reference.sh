#!/usr/bin/env bash
# Builds the API reference from the public headers; warnings are errors: api_reference.sh DOXYGEN. Exit code 77 if doxygen is not installed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
command -v "$1" >/dev/null || { echo 'skipped: doxygen is not installed'; exit 77; }
exec "$1" share/doc/Doxyfile
