#!/usr/bin/env bash
# Checks that texts and names avoid the words of language.txt. Prints each hit as file:line, with the match and what to use instead.
# Fixture data of tests (*.json, weights, pickles) is not checked.
set -euo pipefail
export LC_ALL=C  # matches bytes, which is many times faster
list=$(dirname "${BASH_SOURCE[0]}")/language.txt
patterns=() replacements=()
while IFS=$'\t' read -r pattern replacement; do
  case $pattern in '' | '#'*) continue ;; esac
  [ -n "$replacement" ] || { echo "$list: Expected a tab and a replacement after '$pattern'" >&2; exit 2; }
  patterns+=("$pattern") replacements+=("$replacement")
done <"$list"

# One search finds the lines; only these are matched against each pattern.
status=0
hits=$(git grep -nIE -e "$(IFS='|' && echo "${patterns[*]}")" -- src include tests share jobs modules README.md INSTALL CMakeLists.txt .ci .github \
  ':!.ci/checks/language.txt' ':!*.json' ':!*.pkl' ':!*.pt' ':!*.safetensors') || status=$?
if [ "$status" = 1 ]; then exit 0; fi
[ "$status" = 0 ] || exit "$status"
count=0
while IFS= read -r hit; do
  text=${hit#*:*:}
  for i in "${!patterns[@]}"; do
    [[ $text =~ ${patterns[i]} ]] || continue
    printf "%s '%s'\n    use instead: %s\n" "${hit%"$text"}" "${BASH_REMATCH[0]}" "${replacements[i]}"
    count=$((count + 1))
  done
done <<<"$hits"
echo "$count hits: .ci/checks/language.txt lists the words to avoid" >&2
exit 1
