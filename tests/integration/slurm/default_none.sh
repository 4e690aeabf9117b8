#!/usr/bin/env bash
# default_none.sh BINARIES: a site whose slurm.conf says MpiDefault=none. A bare srun would start ranks that know nothing of each other:
# one error that names the cure, and the cure works. Runs within tests/tools/slurm-two-nodes.sh -m none.
set -uo pipefail
binaries=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
unset SLURM_MPI_TYPE
wrong() { echo "failed: $1"; sed 's/^/    /' output; exit 1; }

scontrol show config >output
grep -qE '^MpiDefault += (none|\(null\))$' output || wrong 'this Slurm has another default'
timeout 60 srun -n2 "$binaries/place" >output 2>&1 && wrong 'a bare srun of two ranks runs'
[ "$(grep -c '^hortator: ' output)" = 1 ] || wrong 'not one line of ours'
grep -qE '^hortator: rank 0 \(n[12]\): srun started 2 ranks, but .*each rank would be a world of its own.* srun --mpi=pmix ' output ||
  wrong 'the line does not name the cure'
timeout 60 srun --mpi=pmix -N1 -n2 "$binaries/place" >output 2>&1 || wrong 'the cure is none'
grep -q '^rank 1 of 2 ' output || wrong 'with the cure the ranks do not meet'
