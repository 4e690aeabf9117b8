#!/usr/bin/env bash
# run.sh [-N HOSTS] SCRIPT ARGUMENT...: runs SCRIPT on the first of two, or more, simulated hosts. Exit code 77 if hosts cannot be simulated.
here=$(dirname "${BASH_SOURCE[0]}")
command -v ip >/dev/null || { echo 'skipped: ip is not installed (apt-get install iproute2)' && exit 77; }
[ "$(id -u)" = 0 ] || { echo 'skipped: only root can simulate hosts' && exit 77; }
grep -q 'Open MPI' <<<"$(mpirun --version 2>/dev/null)" || { echo 'skipped: simulated hosts need the mpirun of Open MPI' && exit 77; }
probe=hortator-probe-$$
if ! ip netns add "$probe" 2>/dev/null; then echo 'skipped: no network namespace can be created' && exit 77; fi
ip netns del "$probe"
exec "$here/../../tools/two-hosts.sh" -c "$@"
