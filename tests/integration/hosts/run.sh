#!/usr/bin/env bash
# run.sh SCRIPT ARGUMENT...: SCRIPT on the first of two hosts; code 77, a skip, where none can be made.
here=$(dirname "${BASH_SOURCE[0]}")
command -v ip >/dev/null || { echo 'skipped: ip is not installed (apt-get install iproute2)' && exit 77; }
[ "$(id -u)" = 0 ] || { echo 'skipped: only root can make hosts' && exit 77; }
grep -q 'Open MPI' <<<"$(mpirun --version 2>/dev/null)" || { echo 'skipped: the hosts are for the mpirun of Open MPI' && exit 77; }
probe=hortator-probe-$$
if ! ip netns add "$probe" 2>/dev/null; then echo 'skipped: no network namespace can be made here' && exit 77; fi
ip netns del "$probe"
exec "$here/../../tools/two-hosts.sh" -c "$@"
