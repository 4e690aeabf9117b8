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
cmake -S "$here/project" -B "$work/consumer" -DCMAKE_BUILD_TYPE=Release "-DCMAKE_PREFIX_PATH=$package" >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
cmake --build "$work/consumer"
output=$(mpirun -n 2 --oversubscribe "$work/consumer/consumer")
echo "$output"
[ "$(grep -ac 'gradient 4$' <<<"$output")" = 1 ]
