#!/bin/sh
# sge_agent.sh HOST WORD...: runs a shell command on another host of the job of Grid Engine, for an Open MPI without support for it.
host=$1
shift
exec qrsh -inherit -nostdin -V -noshell "$host" /bin/sh -c "$*"
