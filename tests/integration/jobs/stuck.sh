#!/usr/bin/env bash
# stuck.sh HORTATOR: an mpirun that does not end although its ranks have recorded why they failed, as one that waits for a host that it cannot reach, is
# killed a minute later by `hortator launch` and by the script of a job. The exit code is that of the ranks.
set -u
hortator=$1
# shellcheck source=tests/unit/tools/support.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../unit/tools/support.sh"
mkdir bin
cat >bin/mpirun <<'SH'
#!/bin/bash
[ "$1" != --version ] || { echo 'mpirun (Open MPI) 4.1.4'; exit; }
while [ $# -gt 0 ]; do
  case $1 in
    -n | --map-by | --bind-to | --hostfile | -x) shift 2 ;;
    --mca) shift 3 ;;
    -*) shift ;;
    *) break ;;
  esac
done
[ "$1" != bash ] || exec "$@"
trap '' TERM USR1
export "${@:2:$#-2}"
mkdir -p "$FOLDER"
echo '{"rank": 0, "host": "n1", "exit_code": 7, "problem": "the network does not answer"}' >"$FOLDER/failure.json"
echo "$FOLDER" >"$HORTATOR_RUN_NOTE"
exec sleep 300
SH
printf '#!/bin/sh\n' >train
chmod +x bin/mpirun train
export PATH=$work/bin:$PATH HORTATOR_LAUNCHER=$work/bin/mpirun

hostname >nodes
"$hortator" job --scheduler pbs -n 1 -- ./train >job.sh 2>job.err
(FOLDER=runs/train PBS_JOBID=1.server PBS_O_WORKDIR=$work PBS_NODEFILE=$work/nodes timeout 150 bash job.sh >job.out 2>&1; echo $? >job.code) &
FOLDER=$work/runs/launched run launch -n 1 ./train
code_is 7
err_has 'the launcher does not end, a minute after the ranks have failed: it is killed'
wait
call='the script of a job' code=$(<job.code) out=$(<job.out) err=$(<job.err)
code_is 7
out_has 'the launcher does not end, a minute after the ranks have failed: it is killed'
out_has 'failed with code 7: {"rank": 0, "host": "n1"'

[ "$failures" = 0 ] || { echo "$failures wrong"; exit 1; }
