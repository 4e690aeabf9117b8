#!/usr/bin/env bash
# Calls that would store a dangling reference, or cannot work, do not compile; the compiler prints the reason: refused_calls.sh BUILD_DIR CXX
set -euo pipefail
build=$1 compiler=$2
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=tests/setup/support.sh
. "$here/../setup/support.sh"
torch=$(sed -n 's|^  set(LibTorch_ROOT_DIR "\(.*\)")|\1|p' "$build/HortatorConfig.cmake")
run "$compiler" -std=c++20 -fsyntax-only -I "$source_tree/include" -I "$build/include" -isystem "$torch/include" -isystem "$torch/include/torch/csrc/api/include" \
  "$here/refused_calls.cpp"
[ "$code" != 0 ] || wrong 'refused_calls.cpp compiles'
refusals=$(grep -F 'error: static assertion failed' <<<"$output") || true
while IFS= read -r message; do
  grep -qF "$message" <<<"$refusals" || wrong "the compiler does not print '$message'"
done < <(sed -n 's|.*// refused: ||p' "$here/refused_calls.cpp")
# there are no other errors
others=$(grep -F 'error:' <<<"$output" | grep -vE "static assertion failed( due to requirement '.*')?: prepare\\(\\)") || true
[ -z "$others" ] || wrong "there are other errors as well: $others"
