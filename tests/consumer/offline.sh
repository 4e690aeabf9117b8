#!/usr/bin/env bash
# With the network cut and nothing to install with, the build configures and the command is built: nothing is fetched.
#   offline.sh GENERATOR
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=tests/setup/support.sh
. "$here/../setup/support.sh"
# the loopback interface alone: without it, Open MPI's compiler wrapper complains to whoever asks it
cut='ip link set lo up'
unshare -rn bash -c "$cut" 2>/dev/null || { echo 'skipped: the network cannot be cut here'; exit 77; }
run env HORTATOR_NO_INSTALL=1 unshare -rn bash -c "
  $cut && ! getent hosts pypi.org && ! ip route get 1.1.1.1 2>/dev/null &&
  cmake -S '$source_tree' -B '$scratch/build' -G '$1' -DCMAKE_BUILD_TYPE=Release -DCMAKE_UNITY_BUILD=ON -DCMAKE_UNITY_BUILD_BATCH_SIZE=6 -DHORTATOR_BUILD_TESTS=OFF -DHORTATOR_BUILD_EXAMPLES=OFF &&
  cmake --build '$scratch/build' --target hortator_cli"
expect_code 0
run "$scratch/build/bin/hortator" --version
expect_code 0
