#!/usr/bin/env bash
# Times small steps on a busy machine: one rank with a thread on each CPU, beside two processes that never sleep. Alternates between libgomp's own
# spinning and what `hortator launch` chooses.
#   busy-steps.sh HORTATOR [ROUNDS]      e.g. busy-steps.sh build/release/bin/hortator 5
set -euo pipefail
[ $# -ge 1 ] || { sed -n '2,4p' "$0" >&2; exit 2; }
hortator=$1 rounds=${2:-5}
unset OMP_WAIT_POLICY GOMP_SPINCOUNT KMP_BLOCKTIME
loops=()
trap 'kill "${loops[@]}"' EXIT
for _ in 1 2; do
  while :; do :; done &
  loops+=($!)
done
steps() { env "$@" "$hortator" launch -n 1 "$hortator" bench step --blocks 3 --steps 20 --json 2>/dev/null | sed -nE 's/.*"median_s": *([-0-9.e]+).*/\1/p'; }
for ((round = 0; round < rounds; ++round)); do
  echo "libgomp: $(steps GOMP_SPINCOUNT=300000) s a step; hortator launch: $(steps OMP_DYNAMIC=false) s a step"
done
