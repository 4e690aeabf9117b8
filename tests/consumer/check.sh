#!/usr/bin/env bash
# Builds a user's project against the build tree, or against an installation that was moved, and runs it on two ranks.
#   check.sh build|install BUILD_DIR
set -euo pipefail
kind=$1 build=$2
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

package=$build
if [ "$kind" = install ]; then
  cmake --install "$build" --prefix "$work/first" >"$work/installation"
  grep -qF "export PATH=$work/first/bin:\$PATH" <<<"$(tail -n 1 "$work/installation")"
  mv "$work/first" "$work/moved"
  package=$work/moved
  diff <(cd "$build/libexec/hortator" && ls) <(cd "$package/libexec/hortator" && ls)  # all verbs that are separate programs
  "$package/bin/hortator" --version
  # All links of the installed documents lead to installed files.
  find "$package" -path '*/doc/*' \( -name '*.md' -o -name INSTALL \) | while read -r document; do
    # shellcheck disable=SC2016  # the backticks are Markdown's
    sed '/^ *```/,/^ *```/d; s/`[^`]*`//g' "$document" | { grep -oE '\]\([^)]+\)' || true; } | sed 's/^](//; s/)$//; s/#.*//' | while read -r link; do
      case $link in '' | http://* | https://*) continue ;; esac
      [ -e "$(dirname "$document")/$link" ] || { echo "${document#"$package/"} links to $link, which is not installed"; exit 1; }
    done
  done
fi

# What an installation loads is what the build tree loads: not another NCCL or CUDA runtime of the machine.
loaded() {
  local file
  for file in "$1"/lib*/libhortator.so "$1"/libexec/hortator/hortator-*; do
    ldd "$file" | sed -nE "s/^\\s*(lib(nccl|cudart|hdf5|mpi|torch|gomp|gfortran)[^ ]*) => ([^ ]*).*/${file##*/} \\1 \\3/p" | sort
  done
}
loaded "$package" >"$work/loaded"
loaded "$build" | diff - "$work/loaded" || { echo "$package loads other libraries than the build tree"; exit 1; }
grep -q 'libhortator.so libmpi.* /' "$work/loaded"

# What the library exports: its soname has the version, which changes when programs may break, and its own symbols are all in namespace
# hortator, or the C interface's hortator_.... Vague symbols (W, V, u: templates and inline functions of LibTorch and the standard library) are not counted as its own.
library=$(ls "$package"/lib*/libhortator.so)
readelf -d "$library" | grep -E 'SONAME.*\[libhortator\.so\.[0-9]+\.[0-9]+\]$'
nm -DC --defined-only "$library" >"$work/symbols"
grep -qE '^[0-9a-f]+ T hortator::' "$work/symbols"
if grep -E '^[0-9a-f]+ [^WVu] ' "$work/symbols" | grep -vE '^[0-9a-f]+ . (typeinfo (name )?for |vtable for |VTT for |(non-virtual|virtual) thunk to )?hortator(::|_[a-z_]+$)'; then
  echo "$library exports these symbols outside of namespace hortator"
  exit 1
fi
if grep -E '^[0-9a-f]+ [WVu] (typeinfo (name )?for |vtable for )?(YAML|nlohmann|boost)::' "$work/symbols"; then
  echo "$library exports these symbols of libraries that it uses internally: they would clash with another release in a program"
  exit 1
fi

cmake -S "$here/project" -B "$work/consumer" -DCMAKE_BUILD_TYPE=Release "-DCMAKE_PREFIX_PATH=$package" >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
cmake --build "$work/consumer"
output=$(mpirun -n 2 --oversubscribe "$work/consumer/consumer")
echo "$output"
[ "$(grep -ac 'gradient 4$' <<<"$output")" = 1 ]
