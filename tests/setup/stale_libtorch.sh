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
choose_wheels

missing() { missing_wheels "${build_wheels[@]}"; }
wheels=$(pinned_wheels "${build_wheels[@]}" | awk '{ print $3 }')
[ -n "$wheels" ] || { echo "skipped: no wheels for $(uname -m)"; exit 77; }
[ "$(missing | awk '{ print $3 }')" = "$wheels" ] || wrong 'not all wheels are missing in an empty folder'

for wheel in $wheels; do
  IFS=- read -r name version _ <<<"$wheel"
  mkdir -p "$libtorch/$name-$version.dist-info" "$libtorch/$name/lib"
  printf 'four' >"$libtorch/$name/lib/lib$name.so.1"
  # records of some wheels have DOS line ends
  printf '%s/lib/lib%s.so.1,sha256=x,4\r\n' "$name" "$name" >"$libtorch/$name-$version.dist-info/RECORD"
done
[ -z "$(missing)" ] || wrong 'complete wheels are reported as missing'

printf 'cut' >"$libtorch/torch/lib/libtorch.so.1"
[[ $(missing) == *torch-2* ]] || wrong 'a truncated library is not detected'
rm "$libtorch/torch/lib/libtorch.so.1"
[[ $(missing) == *torch-2* ]] || wrong 'a missing library is not detected'

# only --gpu needs more wheels, whatever is installed, and for the build only NCCL: the others are downloaded beside it
gpu=1
choose_wheels
[[ $(missing) == *nvidia_nccl* ]] || wrong '--gpu does not need NCCL'
[[ $(missing) != *nvidia_cudnn* ]] || wrong 'the build waits for cuDNN'
[[ $(missing_wheels "${run_wheels[@]}") == *nvidia_cudnn*nvidia_cublas* ]] || wrong "CUDA's libraries are not downloaded for --gpu"
