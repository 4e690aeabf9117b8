#!/usr/bin/env bash
# Which wheels are taken as unpacked: all of one, with every library at its full length.
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
[ "$(missing_wheels | awk '{ print $3 }')" = "$wheels" ] || wrong 'an empty folder is not taken as empty'

for wheel in $wheels; do
  IFS=- read -r name version _ <<<"$wheel"
  mkdir -p "$libtorch/$name-$version.dist-info" "$libtorch/$name/lib"
  printf 'four' >"$libtorch/$name/lib/lib$name.so.1"
  # records of some wheels have DOS line ends
  printf '%s/lib/lib%s.so.1,sha256=x,4\r\n' "$name" "$name" >"$libtorch/$name-$version.dist-info/RECORD"
done
[ -z "$(missing_wheels)" ] || wrong 'whole wheels are taken as missing'

printf 'cut' >"$libtorch/torch/lib/libtorch.so.1"
[[ $(missing_wheels) == *torch-2* ]] || wrong 'a cut library is not noticed'
rm "$libtorch/torch/lib/libtorch.so.1"
[[ $(missing_wheels) == *torch-2* ]] || wrong 'a lost library is not noticed'

# --gpu needs more of the same, and so do tests where a toolkit can build the CUDA side
asks_for_nccl() { [[ $(missing_wheels) == *nvidia_nccl* ]]; }
# shellcheck disable=SC2034
gpu=1
choose_wheels
asks_for_nccl || wrong '--gpu does not ask for NCCL'
gpu=0
nvcc() { echo 'Cuda compilation tools, release 13.0, V13.0.88'; }
choose_wheels tests
asks_for_nccl || wrong 'tests beside a toolkit do not ask for NCCL'
choose_wheels
! asks_for_nccl || wrong 'a job beside a toolkit asks for NCCL'
HORTATOR_NO_INSTALL=1 choose_wheels tests
! asks_for_nccl || wrong 'NCCL is asked for where nothing may be downloaded'
