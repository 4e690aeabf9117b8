#!/usr/bin/env bash
# startup.sh FOLDER HORTATOR MPIRUN: what starting costs. FOLDER holds the programs of this test.
set -euo pipefail
folder=$1 hortator=$2 mpirun=$3
opened=$("$mpirun" -n 1 "$folder/opened_files" "$folder/first_step" 2>/dev/null | tail -n 1)
echo "a rank has opened $opened files up to its end"
# loaded machines take longer: what is promised is a third of this
timing=$("$folder/launch_time" 7 "$hortator" "$folder/first_step" 2>/dev/null | grep '"startup"')
echo "$timing"
launcher=$(sed -E 's/.*"launcher_s": ([-0-9.]+).*/\1/' <<<"$timing")
if [ "$opened" -lt 1 ] || [ "$opened" -ge 300 ]; then echo 'failed: 300 files or more'; exit 1; fi
awk -v s="$launcher" 'BEGIN { exit !(s < 0.15) }' || { echo 'failed: the launcher itself takes long'; exit 1; }
