#!/usr/bin/env bash
# Which wheels are taken as unpacked: all of one, with every library at its full length.
set -euo pipefail
# shellcheck source=tests/setup/support.sh
. "$(dirname "$0")/support.sh"
copy_tree
# shellcheck disable=SC2034
gpu=0
. "$tree/share/setup/common.sh"
. "$tree/share/setup/libtorch.sh"

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

# --gpu needs more of the same
# shellcheck disable=SC2034
gpu=1
[[ $(missing_wheels) == *nvidia_nccl* ]] || wrong '--gpu does not ask for NCCL'
