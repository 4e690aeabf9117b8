#!/usr/bin/env bash
# run.sh [OPTION...] SCRIPT ARGUMENT...: runs SCRIPT under a real Slurm of two nodes. Exit code 77 if Slurm cannot be started.
here=$(dirname "${BASH_SOURCE[0]}")
for program in slurmctld slurmd srun munged; do
  command -v "$program" >/dev/null || { echo "skipped: $program is not installed (apt-get install slurm-wlm munge)" && exit 77; }
done
grep -q 'Open MPI' <<<"$(mpirun --version 2>/dev/null)" || { echo 'skipped: ranks on these nodes connect by PMIx, which needs Open MPI' && exit 77; }
[ "$(id -u)" = 0 ] || { echo 'skipped: only root can start a Slurm of several nodes' && exit 77; }
exec "$here/../../tools/slurm-two-nodes.sh" -c 4 "$@"
