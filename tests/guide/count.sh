#!/usr/bin/env bash
# Checks that every C++ block of the guide was compiled: count.sh GUIDE SNIPPETS OBJECT
set -u
written=$(grep -c '^```cpp' "$1")
compiled=$(grep -cE '^(void snippet_[0-9]+\(\)|namespace program_[0-9]+) \{' "$2")
if [ "$written" -lt 10 ] || [ "$written" != "$compiled" ]; then echo "the guide has $written C++ blocks, of which $compiled were compiled"; exit 1; fi
[ "$3" -nt "$2" ] || { echo "$3 is older than $2"; exit 1; }
