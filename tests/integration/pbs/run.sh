#!/usr/bin/env bash
# run.sh [-N HOSTS] SCRIPT HORTATOR BINARIES: runs SCRIPT beside a real OpenPBS of two hosts. Exit code 77 if OpenPBS cannot be started.
tool=$(dirname "${BASH_SOURCE[0]}")/../../tools/pbs-two-hosts.sh
[ -n "$("$tool" --installation)" ] || { echo 'skipped: no OpenPBS is installed (in /opt/pbs, or in the folder that OPENPBS_ROOT names)' && exit 77; }
[ "$(id -u)" = 0 ] || { echo 'skipped: only root can start an OpenPBS of several hosts' && exit 77; }
command -v ip >/dev/null || { echo 'skipped: ip is not installed (apt-get install iproute2)' && exit 77; }
grep -q 'Open MPI' <<<"$(mpirun --version 2>/dev/null)" || { echo 'skipped: ranks on several hosts of this OpenPBS need Open MPI' && exit 77; }
[ "$(env -u OMP_NUM_THREADS nproc)" -ge 2 ] || { echo 'skipped: two ranks a host need two cores' && exit 77; }
unshare --net --uts --mount --pid --fork true 2>/dev/null || { echo 'skipped: hosts cannot be simulated here' && exit 77; }
exec "$tool" -c 2 "$@"
