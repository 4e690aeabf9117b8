#!/usr/bin/env bash
# completion.sh HORTATOR: the installed scripts complete verbs and options in each shell that is installed.
set -euo pipefail
hortator=$1
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=tests/setup/support.sh
. "$here/../setup/support.sh"
PATH=$(dirname "$hortator"):$PATH
export PATH
scripts=$source_tree/share/completion
expect_both() { # the outputs for "hortator la" and "hortator launch --mixed"
  grep -qx launch <<<"$1" || wrong "the verb is not completed: $1"
  grep -qx -- --mixed-precision <<<"$2" || wrong "the option is not completed: $2"
}

in_bash() { bash -c '. "$1"; COMP_WORDS=("${@:2}") COMP_CWORD=$(($# - 2)); _hortator; printf "%s\n" "${COMPREPLY[@]}"' - "$scripts/hortator.bash" "$@"; }
expect_both "$(in_bash hortator la)" "$(in_bash hortator launch --mixed)"

if command -v zsh >/dev/null; then
  # Within a completion compadd gets the candidates; here it prints them.
  in_zsh() { zsh -fc 'compadd() { shift; print -l -- $@ }; words=("${@[2,-1]}"); CURRENT=${#words}; . $1' - "$scripts/_hortator" "$@"; }
  expect_both "$(in_zsh hortator la)" "$(in_zsh hortator launch --mixed)"
else
  echo 'skipped in part: zsh is not installed'
fi
if command -v fish >/dev/null; then
  # shellcheck disable=SC2016  # the variables are fish's
  in_fish() { HOME=$scratch fish --no-config -c 'source $argv[1]; complete -C "$argv[2]"' "$scripts/hortator.fish" "$1" | cut -f 1; }
  expect_both "$(in_fish 'hortator la')" "$(in_fish 'hortator launch --mixed')"
else
  echo 'skipped in part: fish is not installed'
fi
