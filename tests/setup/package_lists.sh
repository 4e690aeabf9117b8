#!/usr/bin/env bash
# The lists of packages, also those of distributions that nobody has tried: each line names something that set-up looks for and what brings
# it, and nothing that set-up needs is missing.
set -euo pipefail
# shellcheck source=tests/setup/support.sh
. "$(dirname "$0")/support.sh"
# shellcheck source=share/setup/common.sh
. "$source_tree/share/setup/common.sh"
# shellcheck source=share/setup/packages.sh
. "$source_tree/share/setup/packages.sh"
needed=(compiler cmake ninja mpi hdf5 boost catch2 json yaml download extra images)

for list in "$lists"/*-*.txt "$lists"/tests/*.txt "$lists/modules.txt"; do
  name=${list#"$lists"/}
  while read -r capability packages; do
    [ "$capability" = libtorch ] || declare -F "have_$capability" >/dev/null || wrong "$name: nothing looks for $capability"
    [ -n "$packages" ] || wrong "$name: nothing brings $capability"
  done < <(grep -v '^#' "$list")
  [ -z "$(grep -v '^#' "$list" | cut -d ' ' -f 1 | sort | uniq -d)" ] || wrong "$name names something twice"
done
for list in "$lists"/*-*.txt; do
  for capability in "${needed[@]}"; do
    [ -n "$(packages_of "$list" "$capability")" ] || wrong "${list##*/} does not say what brings $capability"
  done
  [ -r "$lists/tests/${list##*/}" ] || wrong "${list##*/}: what tests use there is not listed"
done
# what may be missing where nothing can be installed is explained
for capability in compiler cmake ninja mpi hdf5 mpich hdf5_mpich boost catch2 json yaml cuda download libtorch; do
  grep -q "^$capability " "$lists/modules.txt" || wrong "modules.txt does not explain $capability"
done
