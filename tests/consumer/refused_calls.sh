#!/usr/bin/env bash
# Calls that would borrow what is gone soon, or that cannot work, do not compile, and the compiler says why: refused_calls.sh BUILD_DIR CXX
set -euo pipefail
build=$1 compiler=$2
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=tests/setup/support.sh
. "$here/../setup/support.sh"
torch=$(sed -n 's|^  set(LibTorch_ROOT_DIR "\(.*\)")|\1|p' "$build/HortatorConfig.cmake")
run "$compiler" -std=c++20 -fsyntax-only -I "$source_tree/include" -I "$build/include" -isystem "$torch/include" -isystem "$torch/include/torch/csrc/api/include" \
  "$here/refused_calls.cpp"
[ "$code" != 0 ] || wrong 'all of it compiles'
refusals=$(grep -F 'error: static assertion failed' <<<"$output") || true
while IFS= read -r words; do
  grep -qF "$words" <<<"$refusals" || wrong "the compiler does not say '$words'"
done < <(sed -n 's|.*// refused: ||p' "$here/refused_calls.cpp")
# and nothing else is wrong with it
others=$(grep -F 'error:' <<<"$output" | grep -vF 'static assertion failed: prepare()') || true
[ -z "$others" ] || wrong "it is refused for other reasons, too: $others"
