#!/usr/bin/env bash
# Runs the blocks of the guides that are marked for it, one page after the other in one folder, with an installation: run.sh BUILD_DIR CXX
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
command -v python3 >/dev/null || { echo 'skipped: python3 is not installed'; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cmake --install "$1" --prefix "$work/hortator" >/dev/null
mkdir "$work/home"
export CXX=$2
# the pages after the tutorial use its program and its runs
"$here/pages.sh" run "$here/../.." "$work/hortator" "$work/home" \
  tutorial jobs sites troubleshooting environment performance benchmarking checkpoint-format
