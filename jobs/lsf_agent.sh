#!/bin/sh
# lsf_agent.sh HOST WORD...: runs a shell command on another host of the LSF job, for an Open MPI without LSF support.
host=$1
shift
exec blaunch "$host" /bin/sh -c "$*"
