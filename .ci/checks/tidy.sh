#!/usr/bin/env bash
# Runs clang-tidy on the sources that changed since the last merge, at most eight, to limit the time. The compile commands come from a
# configuration of its own, without unity builds.
set -euo pipefail
max_files=8
commands=build/tidy/compile_commands.json
# releases before 16 cannot parse std::source_location
for release in 16 17 18 19 20 21; do
  if command -v "clang-tidy-$release" >/dev/null; then tool=clang-tidy-$release; break; fi
done
[ -n "${tool:-}" ] || { echo 'skipped: clang-tidy 16 or newer is not installed'; exit 0; }
cmake --preset release -B build/tidy -DCMAKE_UNITY_BUILD=OFF >/dev/null

base=$(git merge-base HEAD '@{upstream}' 2>/dev/null) || base=''
if [ -z "$base" ] || [ "$base" = "$(git rev-parse HEAD)" ]; then base=$(git rev-parse -q --verify HEAD~1) || exit 0; fi
mapfile -t changed < <(git diff --name-only --diff-filter=d "$base" -- 'src/*.cpp' 'share/*.cpp' | while read -r file; do
  ! grep -qF "/$file\"" "$commands" || echo "$file"
done)
[ ${#changed[@]} -gt 0 ] || { echo 'no C++ source has changed'; exit 0; }
[ ${#changed[@]} -le $max_files ] || echo "checking only the first $max_files of ${#changed[@]} changed files"

# the commands are for GCC: remove its precompiled headers and the options that clang does not know
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
sed -E 's/ -(fpch-preprocess|Winvalid-pch)\b//g; s/ -include [^ ]*cmake_pch\.hxx//g' "$commands" >"$folder/compile_commands.json"
printf '%s\0' "${changed[@]:0:$max_files}" | xargs -0 -n 1 -P "$(nproc)" "$tool" -p "$folder" --quiet --extra-arg=-Wno-unknown-warning-option 2>&1 |
  { grep -vE '^[0-9]+ warnings? generated\.$' || true; }
