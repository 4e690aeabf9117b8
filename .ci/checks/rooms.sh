#!/usr/bin/env bash
# The rules between the rooms under src/, and standard MPI only: reads rooms.txt, prints each offending line with the rule that it breaks.
set -euo pipefail
rules=$(dirname "${BASH_SOURCE[0]}")/rooms.txt
includes='^[[:space:]]*#[[:space:]]*include[[:space:]]*[<"][^>"]+[>"]'

bad=0
while read -r kind word files; do
  [ "$kind" = name ] || continue
  while IFS= read -r line; do
    if [[ ${line%%:*} =~ $files ]]; then continue; fi
    printf '%s\n    %s\n' "$line" "$word... is not standard MPI: only ${files/'^$'/nobody} may speak of it"
    bad=1
  done < <(git grep -nE "(^|[^A-Za-z_])${word}[A-Za-z]" -- 'src/*' 'include/*' 'share/examples/*' 'share/new/*')
done <"$rules"

read -r _ most < <(grep '^folder ' "$rules")
while read -r count folder; do
  [ "$count" -le "$most" ] || { echo "$folder: $count sources, a folder holds at most $most: it needs rooms of its own"; bad=1; }
done < <(git ls-files 'src/*' 'include/*' | grep -E '\.(hpp|cpp|cu|inc)$' | sed 's|/[^/]*$||' | sort | uniq -c)

git grep -nE "$includes" -- 'src/*' 'include/*' | awk -v rules="$rules" '
  function reach(room, to,   i, n, next_rooms) {  # all rooms below `room`
    if ((room, to) in seen) return
    seen[room, to] = 1
    n = split(below[to], next_rooms, " ")
    for (i = 1; i <= n; i++) { may[room, next_rooms[i]] = 1; reach(room, next_rooms[i]) }
  }
  function complain(rule) { print place ": " text "\n    " rule; bad = 1 }
  BEGIN {
    while ((getline line < rules) > 0) {
      if (line ~ /^(#|name |folder |$)/) continue
      split(line, word, " ")
      if (word[1] == "only") { only[word[2]] = word[3]; continue }
      rooms[word[1]] = 1
      sub(/^[^ ]+ */, "", line)
      below[word[1]] = line
    }
    for (room in rooms) { may[room, room] = 1; reach(room, room) }
  }
  {
    file = $0; sub(/:.*/, "", file)
    text = $0; sub(/^[^:]*:[0-9]+:/, "", text)
    place = substr($0, 1, length($0) - length(text) - 1)
    header = text; sub(/^[^<"]*[<"]/, "", header); sub(/[>"].*/, "", header)

    if (header in only && file !~ only[header]) complain(header " is seen only by " only[header])
    if (file !~ /^src\/[^\/]+\//) next
    room = file; sub(/^src\//, "", room); sub(/\/.*/, "", room)
    if (!(room in rooms)) complain("the room " room " is not in " rules)
    if (header !~ /\// || header ~ /^hortator\//) next
    to = header; sub(/\/.*/, "", to)
    if (to in rooms && !((room, to) in may)) complain(room " may include only: " (below[room] ? below[room] " and what they include" : "nothing of ours"))
  }
  END { exit bad }
' || bad=1
exit "$bad"
