#!/usr/bin/env bash
# Every shell script, found by name or by first line.
set -euo pipefail
mapfile -t scripts < <({
  git ls-files '*.sh'
  git grep -lE -e '^#!.*\b(ba)?sh$' -- ':!*.sh' || true
} | sort -u)

# A grep that stops at its first match can end the command before it by SIGPIPE: under pipefail what was found then counts as missing.
if git grep -nE '[^|]\| *grep (.* )?(-[a-zA-Z]*q|--quiet)' -- "${scripts[@]}"; then
  echo '.ci/checks/shell.sh: a pipe into grep -q fails now and then. let grep read a here-string (<<<) instead' >&2
  exit 1
fi
command -v shellcheck >/dev/null || { echo 'skipped: shellcheck is not here'; exit 0; }
shellcheck -x "${scripts[@]}"
