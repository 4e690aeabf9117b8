#!/usr/bin/env bash
# The Apptainer recipe has only known sections, passes shellcheck, and copies existing files, which are all that the build needs.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=tests/setup/support.sh
. "$here/../setup/support.sh"
recipe=$source_tree/share/packages/apptainer/hortator.def
section() { awk -v name="%$1" '/^%/ { on = ($1 == name); next } on' "$recipe"; }

while read -r name; do
  case $name in %labels | %files | %post | %environment | %runscript | %test) ;; *) wrong "Apptainer has no section $name" ;; esac
done < <(grep -oE '^%[a-z]+' "$recipe")
for line in 'Bootstrap: docker' 'From: debian:12'; do grep -qx "$line" "$recipe" || wrong "the line '$line' is missing"; done
if command -v shellcheck >/dev/null; then
  for name in post environment runscript test; do
    section "$name" | shellcheck -s sh - || wrong "shellcheck fails on section $name"
  done
fi
while read -r from to; do
  [ -e "$source_tree/$from" ] || wrong "$from does not exist"
  [ "$to" = "/opt/src/hortator/$from" ] || wrong "$from is copied to $to"
done < <(section files | sed 's/^ *//; /^$/d')

# A tree with only these files can be configured as in the recipe.
mkdir "$scratch/tree"
section files | while read -r from _; do [ -z "$from" ] || cp -r "$source_tree/$from" "$scratch/tree/$from"; done
options=$(section post | grep -oE -- '-DHORTATOR_[A-Z_]+=[A-Z]+')
# shellcheck disable=SC2086
LIBTORCH=$source_tree/.deps/libtorch/torch run cmake -S "$scratch/tree" -B "$scratch/build" $options
[ -d "$source_tree/.deps/libtorch/torch" ] || { echo 'skipped in part: LibTorch is not in .deps'; exit 0; }
expect_code 0
