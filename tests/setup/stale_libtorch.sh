#!/usr/bin/env bash
# A wheel counts as unpacked only if it is complete, with every library at its full size.
set -euo pipefail
# shellcheck source=tests/setup/support.sh
. "$(dirname "$0")/support.sh"
copy_tree
# shellcheck disable=SC2034
gpu=0
. "$tree/share/setup/common.sh"
. "$tree/share/setup/packages.sh"
. "$tree/share/setup/libtorch.sh"
unset HORTATOR_NO_INSTALL CUDA_HOME
nvcc() { echo 'Cuda compilation tools, release 12.8, V12.8.93'; }
choose_wheels tests

wheels=$(pinned_wheels | awk '{ print $3 }')
[ -n "$wheels" ] || { echo "skipped: no wheels for $(uname -m)"; exit 77; }
[ "$(missing_wheels | awk '{ print $3 }')" = "$wheels" ] || wrong 'not all wheels are missing in an empty folder'

for wheel in $wheels; do
  IFS=- read -r name version _ <<<"$wheel"
  mkdir -p "$libtorch/$name-$version.dist-info" "$libtorch/$name/lib"
  printf 'four' >"$libtorch/$name/lib/lib$name.so.1"
  # records of some wheels have DOS line ends
  printf '%s/lib/lib%s.so.1,sha256=x,4\r\n' "$name" "$name" >"$libtorch/$name-$version.dist-info/RECORD"
done
[ -z "$(missing_wheels)" ] || wrong 'complete wheels are reported as missing'

printf 'cut' >"$libtorch/torch/lib/libtorch.so.1"
[[ $(missing_wheels) == *torch-2* ]] || wrong 'a truncated library is not detected'
rm "$libtorch/torch/lib/libtorch.so.1"
[[ $(missing_wheels) == *torch-2* ]] || wrong 'a missing library is not detected'

# --gpu needs more wheels, and so do the tests where a toolkit can build the CUDA part
needs_nccl() { [[ $(missing_wheels) == *nvidia_nccl* ]]; }
# shellcheck disable=SC2034
gpu=1
choose_wheels
needs_nccl || wrong '--gpu does not need NCCL'
gpu=0
nvcc() { echo 'Cuda compilation tools, release 13.0, V13.0.88'; }
choose_wheels tests
needs_nccl || wrong 'tests with a toolkit do not need NCCL'
choose_wheels
! needs_nccl || wrong 'a job with a toolkit needs NCCL'
HORTATOR_NO_INSTALL=1 choose_wheels tests
! needs_nccl || wrong 'NCCL is needed although nothing may be downloaded'
