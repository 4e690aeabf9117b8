#!/usr/bin/env bash
# aarch64.sh INCLUDE: cross-compiles everything that includes neither LibTorch nor MPI for aarch64 (Grace nodes), per room one unit with all its
# sources and headers; code is generated for the rooms that have instructions of processors. INCLUDE is the build's folder with version.hpp. Exit code 77 if there is no cross-compiler.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
compiler=aarch64-linux-gnu-g++ generated=$1
command -v "$compiler" >/dev/null || { echo "skipped: $compiler is not installed"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$root"

# The sources of the command are excluded: its verbs cannot be compiled as one unit. So are those of packages, Arrow, zlib and zstd, for which others take
# their place where they are missing.
mapfile -t portable < <(grep -rE '^ *# *(include|pragma once)|^namespace' src include --include='*.cpp' --include='*.hpp' |
  awk -f "$here/no_libtorch.awk" | grep -vE '^src/tools/([^/]*|(checkpoint|completion|config|doctor|env|estimate|job|launch|new|test)/.*|.*_verb\.cpp)$|^src/formats/compressed/(gzip|zstd)\.cpp$|^src/formats/columns/(arrow|ipc|parquet)_.*|^include/' | sort)
for file in src/comm/kernels/half_floats.hpp src/comm/shm/wait.hpp src/comm/kernels/reduce_kernels_portable.cpp src/machine/memory/stream_copy.cpp src/tools/charts/svg.cpp; do
  [[ " ${portable[*]} " == *" $file "* ]] || { echo "$file is not in the list of portable files" >&2; exit 1; }
done
flags=(-std=c++20 -O0 -Wall -Wextra -Werror -Wno-subobject-linkage -DHORTATOR_BUILDING -I src -I include -I "$generated")
compile() { # NAME: compiles work/NAME.cpp
  "$compiler" "${flags[@]}" -c "$work/$1.cpp" -o "$work/$1.o"
  grep -q AArch64 <<<"$(readelf -h "$work/$1.o")"
}
check() { "$compiler" "${flags[@]}" -fsyntax-only "$work/$1.cpp"; } # the same without code
rooms=0
while read -r room; do
  # kernels are compiled separately: they define the same names for each instruction set
  printf '%s\n' "${portable[@]}" | grep "^src/$room/" | grep -v 'reduce_kernels_' | sort -t . -k 2 | sed "s|.*|#include \"$root/&\"|" >"$work/$room.cpp"
  case $room in
    comm | machine) compile "$room" ;; # have instructions of processors
    *) check "$room" ;;
  esac
  rooms=$((rooms + 1))
done < <(printf '%s\n' "${portable[@]}" | cut -d / -f 2 | sort -u)
for file in $(printf '%s\n' "${portable[@]}" | grep 'reduce_kernels_.*cpp$'); do
  echo "#include \"$root/$file\"" >"$work/kernel.cpp"
  compile kernel
done
echo "${#portable[@]} files of $rooms rooms compile for aarch64"
