#!/usr/bin/env bash
# The recipes of containers have only known sections and instructions, pass shellcheck, and copy existing files, which are all that the build
# needs.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=tests/setup/support.sh
. "$here/../setup/support.sh"
packages=$source_tree/share/packages
section() { awk -v name="%$1" '/^%/ { on = ($1 == name); next } on' "$recipe"; }
lint() { ! command -v shellcheck >/dev/null || shellcheck "$@" || wrong "shellcheck fails on $recipe"; }

for name in hortator hortator-cuda; do
  recipe=$packages/apptainer/$name.def
  while read -r title; do
    case $title in %labels | %files | %post | %environment | %runscript | %test) ;; *) wrong "Apptainer has no section $title" ;; esac
  done < <(grep -oE '^%[a-z]+' "$recipe")
  grep -qx 'Bootstrap: docker' "$recipe" || wrong "the line 'Bootstrap: docker' is missing"
  for part in post environment runscript test; do lint -s sh - <<<"$(section "$part")"; done
  while read -r from to; do
    [ -e "$source_tree/$from" ] || wrong "$from does not exist"
    [ "$to" = "/opt/src/hortator/$from" ] || wrong "$from is copied to $to"
  done < <(section files | sed 's/^ *//; /^$/d')
done
grep -qx 'From: debian:12' "$packages/apptainer/hortator.def" || wrong 'the base for CPUs is not Debian 12'
grep -qxE 'From: nvidia/cuda:13\.[0-9.]+-devel-ubuntu[0-9.]+' "$recipe" || wrong 'the base for CUDA does not have the toolkit'
copied=$(section files | awk 'NF { print $1 }')

# The Containerfile copies the same files; both its builds configure as the recipes of Apptainer do.
recipe=$packages/container/Containerfile
instructions=$(sed -e ':a' -e '/\\$/N; s/\\\n//; ta' "$recipe" | grep -vE '^(#|$)')
while read -r instruction rest; do
  case $instruction in
    ARG | FROM | LABEL | ENV | ENTRYPOINT) ;;
    COPY) ;;
    RUN) lint -s sh -e SC2086,SC2154 - <<<"$rest" ;;
    *) wrong "a Containerfile has no instruction $instruction" ;;
  esac
done <<<"$instructions"
diff <(sort <<<"$copied") <(sed -n 's/^COPY \(.*\) [^ ]*$/\1/p' <<<"$instructions" | tr ' ' '\n' | sort) || wrong 'the Containerfile copies other files than the recipes of Apptainer'
grep -qF -- "BASE=$(sed -n 's/^From: //p' "$packages/apptainer/hortator-cuda.def") --build-arg GPU=1" "$recipe" || wrong 'the bases for CUDA differ'

# A tree with only these files can be configured as in the recipe.
[ -d "$source_tree/.deps/libtorch/torch" ] || { echo 'skipped in part: LibTorch is not in .deps'; exit 0; }
recipe=$packages/apptainer/hortator.def
mkdir "$scratch/tree"
while read -r from; do cp -r "$source_tree/$from" "$scratch/tree/$from"; done <<<"$copied"
options=$(section post | grep -oE -- '-DHORTATOR_[A-Z_]+=[A-Z]+')
# shellcheck disable=SC2086
LIBTORCH=$source_tree/.deps/libtorch/torch run cmake -S "$scratch/tree" -B "$scratch/build" $options
expect_code 0
