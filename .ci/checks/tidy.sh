#!/usr/bin/env bash
# clang-tidy on the sources that changed since the last landing, at most eight: enough for each change, never long.
# A build that is configured for it alone, each source by itself, tells how each file is compiled.
set -euo pipefail
most=8
commands=build/tidy/compile_commands.json
# releases before 16 cannot parse std::source_location
for release in 16 17 18 19 20 21; do
  if command -v "clang-tidy-$release" >/dev/null; then tool=clang-tidy-$release; break; fi
done
[ -n "${tool:-}" ] || { echo 'skipped: clang-tidy 16 or newer is not here'; exit 0; }
cmake --preset release -B build/tidy -DCMAKE_UNITY_BUILD=OFF >/dev/null

base=$(git merge-base HEAD '@{upstream}' 2>/dev/null) || base=''
if [ -z "$base" ] || [ "$base" = "$(git rev-parse HEAD)" ]; then base=$(git rev-parse -q --verify HEAD~1) || exit 0; fi
mapfile -t changed < <(git diff --name-only --diff-filter=d "$base" -- 'src/*.cpp' 'share/examples/*.cpp' | while read -r file; do
  ! grep -qF "/$file\"" "$commands" || echo "$file"
done)
[ ${#changed[@]} -gt 0 ] || { echo 'nothing changed that it reads'; exit 0; }
[ ${#changed[@]} -le $most ] || echo "the first $most of ${#changed[@]} changed files"

# the commands are GCC's: its precompiled headers and its own options mean nothing to clang
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
sed -E 's/ -(fpch-preprocess|Winvalid-pch)\b//g; s/ -include [^ ]*cmake_pch\.hxx//g' "$commands" >"$folder/compile_commands.json"
printf '%s\0' "${changed[@]:0:$most}" | xargs -0 -n 1 -P "$(nproc)" "$tool" -p "$folder" --quiet --extra-arg=-Wno-unknown-warning-option 2>&1 |
  { grep -vE '^[0-9]+ warnings? generated\.$' || true; }
