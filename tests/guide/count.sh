#!/usr/bin/env bash
# Checks that every C++ block of the pages was compiled: count.sh SNIPPETS OBJECT PAGE...
set -u
snippets=$1 object=$2
shift 2
written=$(($(cat "$@" | grep -cE '^```cpp( |$)') + 2 * $(cat "$@" | grep -c '^```diff')))
compiled=$(grep -cE '^(void snippet_[0-9]+\(\)|namespace program_[0-9]+) \{' "$snippets")
if [ "$written" -lt 25 ] || [ "$written" != "$compiled" ]; then echo "the pages have $written C++ blocks, but $compiled were compiled"; exit 1; fi
[ "$object" -nt "$snippets" ] || { echo "$object is older than $snippets"; exit 1; }
echo "$compiled C++ blocks compile"
