#!/bin/sh
# pbs_agent.sh HOST WORD...: runs a shell command on another host of the PBS job, for an Open MPI without PBS support. pbs_tmrsh executes its
# words without a shell and with few variables. Every host looks the agent up, so it is named by its full path.
host=$1
shift
if ! tmrsh=$(command -v pbs_tmrsh); then
  # shellcheck disable=SC1090,SC1091
  . "${PBS_CONF_FILE:-/etc/pbs.conf}"
  tmrsh=$PBS_EXEC/bin/pbs_tmrsh
fi
# It waits for a dead host for minutes, and mpirun for the agent.
if ! timeout -k 1 20 "$tmrsh" "$host" /bin/true; then
  echo "hortator: the host $host does not answer" >&2
  exit 1
fi
quoted() { printf "'%s'" "$(printf %s "$1" | sed "s/'/'\\\\''/g")"; }
exec "$tmrsh" "$host" /bin/sh -c "PATH=$(quoted "$PATH") LD_LIBRARY_PATH=$(quoted "${LD_LIBRARY_PATH:-}"); export PATH LD_LIBRARY_PATH; $*"
