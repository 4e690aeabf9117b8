#!/usr/bin/env bash
# Every shell script, found by name or by first line.
set -euo pipefail
command -v shellcheck >/dev/null || { echo 'skipped: shellcheck is not here'; exit 0; }
{
  git ls-files '*.sh'
  git grep -lE -e '^#!.*\b(ba)?sh$' -- ':!*.sh' || true
} | sort -u | xargs -r shellcheck -x
