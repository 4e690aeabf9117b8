#!/usr/bin/env bash
# `hortator test` passes on a good machine, reports what is wrong on others, and refuses to run on login nodes.
#   check.sh HORTATOR WRONG_SUMS
set -euo pipefail
hortator=$1 wrong_sums=$2
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=tests/setup/support.sh
. "$here/../../setup/support.sh"
cd "$scratch"
for name in $(compgen -e | grep -E '^(SLURM|PBS|HORTATOR)_' || true); do unset "$name"; done
mkdir bin disk

run "$hortator" test -n 2 --here --dir disk
expect_code 0
for check in ranks self mpi node checkpoint 'checkpoint by MPI-IO' loader paging training; do expect_line "^passed +$check +[0-9.]+ s  "; done
expect_line '2 ranks, 1 node, 2 per node'
expect_line '^([0-9]+) of \1 checks passed'
expect_no_line '^FAILED'
[ -z "$(ls -A disk)" ] || wrong 'hortator test leaves files in the folder'
expect_absent runs
# a record is written only on request
HORTATOR_RUN_DIR=kept run "$hortator" test -n 2 --here --dir disk
expect_code 0
grep -q finished kept/outcome.json || wrong 'outcome.json in HORTATOR_RUN_DIR is missing'
[ -z "$(ls -A disk)" ] || wrong 'hortator test leaves files in the folder'
# ranks may be started with mpirun, and one rank is enough
run mpirun -n 3 --oversubscribe "$hortator" test --here --dir disk
expect_code 0
expect_line '3 ranks, 1 node, 3 per node'
expect_line '^([0-9]+) of \1 checks passed'
run "$hortator" test --here --dir disk
expect_code 0
expect_line '^([0-9]+) of \1 checks passed'

# an MPI that computes wrong sums
run env LD_PRELOAD="$wrong_sums" "$hortator" test -n 2 --here --dir disk
expect_code 1
expect_line '^FAILED +mpi .*all_reduce of .* has a wrong result'
expect_line '^passed +checkpoint '
expect_line 'of 9 checks passed'
# a folder that is not writable
run "$hortator" test -n 2 --here --dir /proc
expect_code 1
expect_line '/proc'

# a login node: a scheduler is installed, and this is not a job
printf '#!/bin/sh\n' >bin/sbatch
chmod +x bin/sbatch
PATH=$scratch/bin:$PATH run "$hortator" test --dir disk
expect_code 2
expect_line 'This is a login node of Slurm.*--here'
PATH=$scratch/bin:$PATH run "$hortator" test --here --dir disk
expect_code 0
PATH=$scratch/bin:$PATH SLURM_JOB_ID=1 run "$hortator" test --dir disk
expect_code 0
run "$hortator" test --her
expect_code 2
expect_line "did you mean '--here'"
