#!/usr/bin/env bash
# Runs shellcheck on all shell scripts, which are found by name or by first line.
set -euo pipefail
mapfile -t scripts < <({
  git ls-files '*.sh'
  git grep -lE -e '^#!.*\b(ba)?sh$' -- ':!*.sh' ':!*.md' || true
} | sort -u)

# grep -q exits at its first match, which may end the command before it in the pipe by SIGPIPE: with pipefail the match then counts as a
# failure.
if git grep -nE '[^|]\| *grep (.* )?(-[a-zA-Z]*q|--quiet)' -- "${scripts[@]}"; then
  echo '.ci/checks/shell.sh: A pipe into grep -q fails sporadically. Let grep read a here-string (<<<) instead' >&2
  exit 1
fi
command -v shellcheck >/dev/null || { echo 'skipped: shellcheck is not installed'; exit 0; }
shellcheck -x "${scripts[@]}"
