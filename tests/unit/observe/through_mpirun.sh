#!/usr/bin/env bash
# A bar is also drawn through mpirun and `hortator launch`, whose ranks have no terminal: through_mpirun.sh MPIRUN TEST_PROGRAM HORTATOR
set -u
command -v script >/dev/null || { echo 'skipped: script (util-linux) is not here'; exit 77; }

# seen COMMAND: the number of ranks (of two) that report the width of the terminal on which COMMAND's mpirun was started
seen() { TERM=dumb script -qec "stty cols 97; $1" /dev/null </dev/null | grep -c 'columns=97'; }

start="'$1' -n 2 '$2' '[.columns]'"
failures=0
expect() {
  local found
  found=$(seen "$2")
  [ "$found" = "$1" ] || { echo "$2: $found ranks see the terminal, not $1"; failures=1; }
}
expect 2 "$start"
expect 0 "$start 2>/dev/null"
expect 0 "'$1' -n 2 sh -c \"'$2' '[.columns]' 2>/dev/null; true\""
launch="'$3' launch -n 2 --launcher '$1' '$2' '[.columns]'"
expect 2 "$launch"
expect 0 "$launch 2>/dev/null"
exit "$failures"
