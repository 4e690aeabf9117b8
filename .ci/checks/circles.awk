# Finds circles among the folders of src/: sets of folders in which each leads to every other along includes. Prints those that rooms.txt does not
# list, with the includes inside them, and the listed ones that are gone. A header and its source count for their folder.
# Used by rooms.sh: awk -v rules=ROOMS.TXT -f circles.awk, with the lines FILE:LINE:#include ... of all sources as input.
function folder_of(path) { sub(/\/[^\/]*$/, "", path); return path }
function add_folder(name,   i) {  # to folder[], which is in order
  for (i = folders++; i > 0 && folder[i] > name; i--) folder[i + 1] = folder[i]
  folder[i + 1] = name
}
function follow(start, at,   i, n, next_folders) {  # sets leads[start, x] for all folders x that `at` leads to
  n = split(arrows[at], next_folders, " ")
  for (i = 1; i <= n; i++) {
    if ((start, next_folders[i]) in leads) continue
    leads[start, next_folders[i]] = 1
    follow(start, next_folders[i])
  }
}
function collect(first,   i) {  # the circle of this folder: its members and their number
  for (i = 1; i <= folders; i++) {
    if (!((first, folder[i]) in leads) || !((folder[i], first) in leads)) continue
    circle_of[folder[i]] = first
    members[first] = members[first] " " folder[i]
    size[first]++
  }
}
function shared(line, first,   i, n, listed, common) {  # how many folders of a line of the list are in this circle
  n = split(line, listed, " ")
  for (i = 1; i <= n; i++) common += circle_of[listed[i]] == first
  return common + 0
}
function fields(line,   listed) { return split(line, listed, " ") }
function complain(what, rule) { print what "\n    " rule; bad = 1 }
function judge_circle(first,   k) {
  for (k = 1; k <= lines; k++) if (shared(known[k], first) == size[first]) return  # listed, or part of one that is
  for (k = 1; k <= arrow_lines; k++) {
    if (circle_of[from[k]] == first && circle_of[to[k]] == first && !is_known(from[k], to[k])) print text[k]
  }
  complain("circle " members[first], "These folders include each other in a circle: turn one of the includes, or move what they share into a folder below them")
}
function is_known(a, b,   k, line) {
  for (k = 1; k <= lines; k++) {
    line = " " known[k] " "
    if (index(line, " " a " ") && index(line, " " b " ")) return 1
  }
  return 0
}
function judge_line(line,   i, left, first) {
  for (i = 1; i <= folders; i++) {
    first = folder[i]
    if (!(first in size)) continue
    if (shared(line, first) == fields(line)) return  # still one, or part of a larger one, which is reported as new
    if (shared(line, first) == size[first]) left = left "; circle " members[first]
  }
  complain("circle  " line, "These folders are no longer a circle. Keep of this line in " rules " only: " (left ? substr(left, 3) : "nothing"))
}
BEGIN {
  while ((getline line < rules) > 0) if (sub(/^circle +/, "", line)) known[++lines] = line
}
{
  file = $0; sub(/:.*/, "", file); sub(/^src\//, "", file)
  header = $0; sub(/^[^<"]*[<"]/, "", header); sub(/[>"].*/, "", header)
  if (header !~ /\// || folder_of(file) == folder_of(header)) next
  text[++arrow_lines] = $0
  from[arrow_lines] = folder_of(file)
  to[arrow_lines] = folder_of(header)
  if (!(from[arrow_lines] in arrows)) add_folder(from[arrow_lines])
  arrows[from[arrow_lines]] = arrows[from[arrow_lines]] " " to[arrow_lines]
}
END {
  for (i = 1; i <= folders; i++) follow(folder[i], folder[i])
  for (i = 1; i <= folders; i++) if ((folder[i], folder[i]) in leads && !(folder[i] in circle_of)) collect(folder[i])
  for (i = 1; i <= folders; i++) if (folder[i] in size) judge_circle(folder[i])
  for (i = 1; i <= lines; i++) judge_line(known[i])
  exit bad
}
