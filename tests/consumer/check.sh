#!/usr/bin/env bash
# Builds a user's project against Hortator and runs it on two ranks: against the build tree, or against an installation that was moved.
#   check.sh build|install BUILD_DIR
set -euo pipefail
kind=$1 build=$2
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

package=$build
if [ "$kind" = install ]; then
  cmake --install "$build" --prefix "$work/first" >/dev/null
  mv "$work/first" "$work/moved"
  package=$work/moved
  diff <(cd "$build/libexec/hortator" && ls) <(cd "$package/libexec/hortator" && ls)  # every verb that is a program of its own
  "$package/bin/hortator" --version
fi

# What the library shows: its soname changes with each version that may break programs, and all that is its own is hortator's. Vague symbols
# (W, V, u: templates and inline functions of LibTorch and the standard library) are any program's.
library=$(ls "$package"/lib*/libhortator.so)
readelf -d "$library" | grep -E 'SONAME.*\[libhortator\.so\.[0-9]+\.[0-9]+\]$'
nm -DC --defined-only "$library" >"$work/symbols"
grep -qE '^[0-9a-f]+ T hortator::' "$work/symbols"
if grep -E '^[0-9a-f]+ [^WVu] ' "$work/symbols" | grep -vE '^[0-9a-f]+ . (typeinfo (name )?for |vtable for |VTT for |(non-virtual|virtual) thunk to )?hortator::'; then
  echo "$library shows these, which are not hortator's"
  exit 1
fi
if grep -E '^[0-9a-f]+ [WVu] (typeinfo (name )?for |vtable for )?(YAML|nlohmann|boost)::' "$work/symbols"; then
  echo "$library shows these of libraries that only it uses: another release of them in a program would meet them"
  exit 1
fi

cmake -S "$here/project" -B "$work/consumer" -DCMAKE_BUILD_TYPE=Release "-DCMAKE_PREFIX_PATH=$package" >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
cmake --build "$work/consumer"
output=$(mpirun -n 2 --oversubscribe "$work/consumer/consumer")
echo "$output"
[ "$(grep -ac 'gradient 4$' <<<"$output")" = 1 ]
