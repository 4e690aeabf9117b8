#!/usr/bin/env bash
# measure.sh FOLDER PROGRAMS LIBRARY LAYER MPIEXEC...: runs PROGRAMS/counted in jobs of 2 to 32 ranks (the last argument of
# MPIEXEC is the number of ranks) and checks the figures with PROGRAMS/judge. Writes files to FOLDER.
set -euo pipefail
folder=$1 programs=$2 library=$3 layer=$4
shift 4

# Calls that need not be counted: local ones, and those that complete or poll an operation that was counted when it started.
local='Abort|Errhandler_free|File_(create|get|set)_errhandler|Comm_(free|get_errhandler|group|rank|set_errhandler|size|test_inter|f2c|c2f)|Info_(create|free|set)|Group_(free|range_incl|translate_ranks)|Iprobe|Error_string|Finalize|Finalized|Get_[a-z_]*|Init_thread|Initialized|Is_thread_main|Query_thread|Test|Op_create|Op_free|Type_.*|Waitall'
uncounted=$(nm -D --undefined-only "$library" | grep -oE '\bMPI_[A-Za-z0-9_]+' | sort -u | grep -vxE "MPI_($local)" |
  while read -r name; do grep -q "int $name(" "$layer" || echo "$name"; done)
[ -z "$uncounted" ] || { echo "the library makes MPI calls that $layer does not count:" "$uncounted" && exit 1; }

rm -rf "$folder"
mkdir -p "$folder"
for ranks in 2 4 8 16 32; do
  "$@" "$ranks" "$programs/counted" "$folder/of_$ranks" >>"$folder/figures"
done
"$programs/judge" <"$folder/figures"
