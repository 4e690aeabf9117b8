#!/usr/bin/env bash
# startup.sh FOLDER HORTATOR MPIRUN: what starting costs. FOLDER holds the programs of this test.
set -euo pipefail
folder=$1 hortator=$2 mpirun=$3
opened=$("$mpirun" -n 1 "$folder/opened_files" "$folder/first_step" 2>/dev/null | tail -n 1)
echo "a rank has opened $opened files up to its end"
timing=$("$folder/launch_time" 7 "$hortator" "$folder/first_step" 2>/dev/null | grep '^{')
echo "$timing"
field() { sed -nE "s/.*\"$1\": ([-0-9.]+).*/\1/p" <<<"$timing"; }
if [ "$opened" -lt 1 ] || [ "$opened" -ge 300 ]; then echo 'failed: 300 files or more'; exit 1; fi
awk -v s="$(field launcher_cpu_s)" 'BEGIN { exit !(s > 0 && s < 0.05) }' || { echo 'failed: the launcher itself takes 50 ms or more'; exit 1; }
# nor does it sleep
awk -v s="$(field launcher_wall_s)" 'BEGIN { exit !(s < 0.05) }' || { echo 'failed: the launcher itself waits for something'; exit 1; }
