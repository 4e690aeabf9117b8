#!/usr/bin/env bash
# The lists of packages, including those of untested distributions: each line has a capability that the set-up checks and the packages that
# provide it, and nothing that the set-up needs is missing.
set -euo pipefail
# shellcheck source=tests/setup/support.sh
. "$(dirname "$0")/support.sh"
# shellcheck source=share/setup/common.sh
. "$source_tree/share/setup/common.sh"
# shellcheck source=share/setup/packages.sh
. "$source_tree/share/setup/packages.sh"
needed=(compiler cmake ninja mpi hdf5 boost catch2 json yaml download extra clang compression images unicode)

for list in "$lists"/*-*.txt "$lists"/tests/*.txt "$lists/modules.txt"; do
  name=${list#"$lists"/}
  while read -r capability packages; do
    [ "$capability" = libtorch ] || declare -F "have_$capability" >/dev/null || wrong "$name: the set-up has no check for $capability"
    [ -n "$packages" ] || wrong "$name: no package for $capability"
  done < <(grep -v '^#' "$list")
  [ -z "$(grep -v '^#' "$list" | cut -d ' ' -f 1 | sort | uniq -d)" ] || wrong "$name lists a capability twice"
done
for list in "$lists"/*-*.txt; do
  for capability in "${needed[@]}"; do
    [ -n "$(packages_of "$list" "$capability")" ] || wrong "${list##*/}: no package for $capability"
  done
  [ -r "$lists/tests/${list##*/}" ] || wrong "${list##*/}: there is no list of packages for the tests"
done
# modules.txt explains everything that may be missing where nothing can be installed
for capability in compiler cmake ninja mpi hdf5 mpich hdf5_mpich boost catch2 json yaml cuda download libtorch; do
  grep -q "^$capability " "$lists/modules.txt" || wrong "modules.txt does not explain $capability"
done
