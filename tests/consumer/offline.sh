#!/usr/bin/env bash
# The documented installation without a network, in a network namespace without connections: sources with LibTorch in .deps/,
# HORTATOR_NO_INSTALL=1, set-up, build, installation; and the installation works.
#   offline.sh LIBTORCH
set -euo pipefail
libtorch=$1
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=tests/setup/support.sh
. "$here/../setup/support.sh"
# only the loopback interface: without it, Open MPI's compiler wrapper prints warnings
isolate='ip link set lo up'
unshare -rn bash -c "$isolate" 2>/dev/null || { echo 'skipped: no network namespace can be created'; exit 77; }
without_network() { run unshare -rn bash -c "$isolate && ! getent hosts pypi.org && ! ip route get 1.1.1.1 2>/dev/null && $1"; }

# The tree as it is copied to such a machine: with the wheels' folder, or with LIBTORCH for a LibTorch of the site.
tree=$scratch/tree
mkdir -p "$tree/.deps"
for name in .github CMakeLists.txt CMakePresets.json INSTALL LICENSE README.md include jobs modules share src tests; do cp -r "$source_tree/$name" "$tree"; done
if [ "$libtorch" = "$source_tree/.deps/libtorch/torch" ]; then
  ln -s "$source_tree/.deps/libtorch" "$tree/.deps/libtorch"
  unset LIBTORCH
else
  export LIBTORCH=$libtorch
fi
export HORTATOR_NO_INSTALL=1
cd "$scratch"
without_network "'$tree/share/setup/setup.sh' --prefix '$scratch/prefix'"
expect_code 0
expect_line "installed into $scratch/prefix"
expect_no_line '^hortator: (installing|.*[Dd]ownloading)'
without_network "'$scratch/prefix/bin/hortator' test -n 2 --here --dir ."
expect_code 0
expect_line '^([0-9]+) of \1 checks passed'
