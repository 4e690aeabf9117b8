#!/usr/bin/env bash
# Every public header's comments become the API reference without a warning: api_reference.sh DOXYGEN. Exit code 77: it is not here.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
command -v "$1" >/dev/null || { echo 'skipped: doxygen is not here'; exit 77; }
exec "$1" share/doc/Doxyfile
