#!/usr/bin/env bash
# communication.sh BUILD TARGET MPIEXEC: compiles the communication tests of another MPI, and runs them on 1 to 4 ranks.
set -euo pipefail
build=$1 target=$2 mpiexec=$3
cmake --build "$build" --target "$target"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
for ranks in 1 2 3 4; do
  "$mpiexec" -n "$ranks" "$build/tests/$target" >"$ranks.txt" 2>&1 || { cat "$ranks.txt" >&2; echo "failed on $ranks ranks" >&2; exit 1; }
  grep -a -m1 'All tests passed' "$ranks.txt"
done
