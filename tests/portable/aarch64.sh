#!/usr/bin/env bash
# Compiles everything that sees neither LibTorch nor MPI for aarch64 (Grace nodes), with a cross-compiler. Exit code 77: there is none.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
compiler=aarch64-linux-gnu-g++
command -v "$compiler" >/dev/null || { echo "skipped: $compiler is not here"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

mapfile -t sources < <(grep -LE '#include *[<"](ATen|c10|torch|mpi|hdf5|nlohmann|comm|io|train|mpi)[/.]' "$root"/src/{base,launching}/*.cpp)
[ ${#sources[@]} -ge 5 ] || { echo "only ${#sources[@]} sources were found" >&2; exit 1; }
for source in "${sources[@]}"; do
  "$compiler" -std=c++20 -O2 -Wall -Wextra -Werror -I "$root/src" -I "$root/include" -c "$source" -o "$work/object.o"
done
readelf -h "$work/object.o" | grep -q AArch64
echo "${#sources[@]} sources compile for aarch64"
