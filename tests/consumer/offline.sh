#!/usr/bin/env bash
# The documented way without a network, with the network cut: sources with LibTorch in .deps/, HORTATOR_NO_INSTALL=1, set-up, build,
# installation; and what was installed works.
#   offline.sh LIBTORCH
set -euo pipefail
libtorch=$1
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=tests/setup/support.sh
. "$here/../setup/support.sh"
# the loopback interface alone: without it, Open MPI's compiler wrapper complains to whoever asks it
cut='ip link set lo up'
unshare -rn bash -c "$cut" 2>/dev/null || { echo 'skipped: the network cannot be cut here'; exit 77; }
without_network() { run unshare -rn bash -c "$cut && ! getent hosts pypi.org && ! ip route get 1.1.1.1 2>/dev/null && $1"; }

# The tree as it is copied to such a machine: the wheels' folder, or a LibTorch of the site's that LIBTORCH names.
tree=$scratch/tree
mkdir -p "$tree/.deps"
for name in CMakeLists.txt CMakePresets.json INSTALL LICENSE README.md include jobs modules share src tests; do cp -r "$source_tree/$name" "$tree"; done
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
expect_no_line '^hortator: (installing|fetching|.*[Dd]ownloading)'
without_network "'$scratch/prefix/bin/hortator' test -n 2 --here --dir ."
expect_code 0
expect_line '^([0-9]+) of \1 checks passed'
