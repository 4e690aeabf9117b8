#!/usr/bin/env bash
# Checks which rooms (folders of src/, and share/bench) include which, that the folders inside them include each other in no circle but those that are
# listed, that only standard MPI is used, and that the top level holds nothing new. Prints each line that breaks a rule of rooms.txt, and the rule.
set -euo pipefail
rules=$(dirname "${BASH_SOURCE[0]}")/rooms.txt
includes='^[[:space:]]*#[[:space:]]*include[[:space:]]*[<"][^>"]+[>"]'

bad=0
while read -r kind prefix files; do
  [ "$kind" = name ] || continue
  while IFS= read -r line; do
    if [[ ${line%%:*} =~ $files ]]; then continue; fi
    printf '%s\n    %s\n' "$line" "$prefix... is not standard MPI. Files that may use it: ${files/'^$'/none}"
    bad=1
  done < <(git grep -nE "(^|[^A-Za-z_])${prefix}[A-Za-z]" -- 'src/*' 'include/*' 'share/bench/*' 'share/examples/*' 'share/new/*')
done <"$rules"

read -r _ max < <(grep '^folder ' "$rules")
while read -r count folder; do
  [ "$count" -le "$max" ] || { echo "$folder: $count sources, a folder holds at most $max: divide it by theme"; bad=1; }
done < <(git ls-files 'src/*' 'include/*' 'share/bench/*' 'tests/*' | grep -E '\.(hpp|cpp|cu|inc)$' | sed 's|/[^/]*$||' | sort | uniq -c)

top=$(sed -n 's/^top //p' "$rules")
while read -r name; do
  [[ " $top " == *" $name "* ]] || { echo "$name: the top level holds only: $top"; bad=1; }
done < <(git ls-files | cut -d/ -f1 | sort -u)

git grep -nE "$includes" -- 'src/*' 'include/*' 'share/bench/*' | awk -v rules="$rules" '
  function reach(room, to,   i, n, next_rooms) {  # sets may[room, x] for all rooms x below `room`
    if ((room, to) in seen) return
    seen[room, to] = 1
    n = split(below[to], next_rooms, " ")
    for (i = 1; i <= n; i++) { may[room, next_rooms[i]] = 1; reach(room, next_rooms[i]) }
  }
  function complain(rule) { print place ": " text "\n    " rule; bad = 1 }
  BEGIN {
    while ((getline line < rules) > 0) {
      if (line ~ /^(#|name |folder |circle |top |$)/) continue
      split(line, field, " ")
      if (field[1] == "only") { only[field[2]] = field[3]; continue }
      rooms[field[1]] = 1
      sub(/^[^ ]+ */, "", line)
      below[field[1]] = line
    }
    for (room in rooms) { may[room, room] = 1; reach(room, room) }
  }
  {
    file = $0; sub(/:.*/, "", file)
    text = $0; sub(/^[^:]*:[0-9]+:/, "", text)
    place = substr($0, 1, length($0) - length(text) - 1)
    header = text; sub(/^[^<"]*[<"]/, "", header); sub(/[>"].*/, "", header)

    if (header in only && file !~ only[header]) complain("Only " only[header] " may include " header)
    if (file !~ /^(src|share)\/[^\/]+\//) next
    room = file; sub(/^(src|share)\//, "", room); sub(/\/.*/, "", room)
    if (!(room in rooms)) complain("Room \x27" room "\x27 is not listed in " rules)
    if (header !~ /\// || header ~ /^hortator\//) next
    to = header; sub(/\/.*/, "", to)
    if (to in rooms && !((room, to) in may)) complain("Room \x27" room "\x27 may include only: " (below[room] ? below[room] " and what these may include" : "no other room"))
  }
  END { exit bad }
' || bad=1

{ git grep -nE "$includes" -- 'src/*' || true; } | awk -v rules="$rules" -f "$(dirname "${BASH_SOURCE[0]}")/circles.awk" || bad=1
exit "$bad"
