#!/usr/bin/env bash
# default_none.sh BINARIES: a site with MpiDefault=none in slurm.conf. A bare srun would start separate one-rank runs: this is one error with a
# fix, and the fix works. Runs under tests/tools/slurm-two-nodes.sh -m none.
set -uo pipefail
binaries=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
unset SLURM_MPI_TYPE
wrong() { echo "failed: $1"; sed 's/^/    /' output; exit 1; }

scontrol show config >output
grep -qE '^MpiDefault += (none|\(null\))$' output || wrong 'MpiDefault of this Slurm is not none'
timeout 60 srun -n2 "$binaries/place" >output 2>&1 && wrong 'a bare srun of two ranks succeeds'
[ "$(grep -c '^hortator: ' output)" = 1 ] || wrong 'expected exactly one line of Hortator'
grep -qE '^hortator: rank 0 \(n[12]\): srun started 2 ranks, but .*each rank would be a world of its own.* srun --mpi=pmix ' output ||
  wrong 'the line does not contain the fix'
timeout 60 srun --mpi=pmix -N1 -n2 "$binaries/place" >output 2>&1 || wrong 'the fix does not work'
grep -q '^rank 1 of 2 ' output || wrong 'with the fix the ranks are still separate'
