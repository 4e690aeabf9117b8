#!/usr/bin/env bash
# startup.sh FOLDER HORTATOR MPIRUN: checks the cost of start-up. FOLDER contains the programs of this test.
set -euo pipefail
folder=$1 hortator=$2 mpirun=$3
opened=$("$mpirun" -n 1 "$folder/opened_files" "$folder/first_step" 2>/dev/null | tail -n 1)
echo "a rank opened $opened files"
timing=$("$folder/launch_time" 7 "$hortator" "$folder/first_step" 2>/dev/null | grep '^{')
echo "$timing"
field() { sed -nE "s/.*\"$1\": ([-0-9.]+).*/\1/p" <<<"$timing"; }
if [ "$opened" -lt 1 ] || [ "$opened" -ge 300 ]; then echo 'failed: expected 1 to 299 opened files'; exit 1; fi
awk -v s="$(field launcher_cpu_s)" 'BEGIN { exit !(s > 0 && s < 0.05) }' || { echo 'failed: the launcher itself takes 50 ms of processor time or more'; exit 1; }
# it does not sleep either
awk -v s="$(field launcher_wall_s)" 'BEGIN { exit !(s < 0.05) }' || { echo 'failed: the launcher itself takes 50 ms or more'; exit 1; }
# nor does a program without a launcher start a daemon of MPI
OPAL_BINDIR=/nonexistent "$folder/first_step" >/dev/null || { echo 'failed: a plain start needs programs of MPI'; exit 1; }
