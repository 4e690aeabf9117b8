#!/usr/bin/env bash
# hortator job and launch under Flux, LSF and Grid Engine, whose commands here check their arguments by the public documentation, record them and
# run what they are given: schedulers.sh HORTATOR. Prints each failure and exits with 1. No real scheduler of these takes part.
# shellcheck disable=SC2016  # hostile arguments are not to be expanded
set -u
hortator=$1
# shellcheck source=tests/unit/tools/support.sh
. "$(dirname "$0")/support.sh"
wrong() { printf 'wrong: %s\n' "$*"; failures=$((failures + 1)); }
program() { { echo '#!/bin/bash'; cat; } >"$1"; chmod +x "$1"; }
for name in FLUX_URI SGE_ROOT JOB_ID PE_HOSTFILE LSB_DJOB_HOSTFILE; do unset "$name"; done

mkdir bin
clean_path=$PATH
export PATH=$work/bin:$PATH HORTATOR_LAUNCHER=mpirun
program bin/mpirun <<'SH'
[ "$1" != --version ] || { echo 'mpirun (Open MPI) 4.1.4'; exit; }
echo "mpirun $*" >>"$HOME/calls"
while [ $# -gt 0 ]; do
  case $1 in
    -n | --map-by | --bind-to | --hostfile | --host) shift 2 ;;
    --mca) shift 3 ;;
    -*) shift ;;
    *) break ;;
  esac
done
exec "$@"
SH
program bin/ompi_info <<'SH'
[ -z "${KNOWS:-}" ] || echo "mca:plm:$KNOWS:version"; [ -z "${KNOWS:-}" ] || echo "mca:ras:$KNOWS:version"
SH
# flux: of two brokers. `flux run` drops its options and runs the rest once.
program bin/flux <<'SH'
echo "flux $*" >>"$HOME/calls"
verb=$1
shift
case $verb in
  getattr) case $1 in size) echo 2 ;; jobid) echo f2vWXyz ;; esac ;;
  exec) hostname ;;
  run)
    while [[ ${1-} == -* ]]; do
      case $1 in
        --nodes=* | --tasks-per-node=* | --ntasks=* | --cores=* | --cores-per-task=* | --gpus-per-node=* | --setopt=* | --label-io | --requires=* | --output=*) shift ;;
        *) echo "flux run: unrecognized arguments: $1" >&2; exit 2 ;;
      esac
    done
    exec "$@"
    ;;
  batch)
    while [[ ${1-} == -* ]]; do
      case $1 in --dependency=afterany:* | --env=HORTATOR_LINK=*) shift ;; *) echo "flux batch: unrecognized arguments: $1" >&2; exit 2 ;; esac
    done
    sed -n 's/^#flux: //p' "$1" >"$HOME/directives"
    while read -r option; do
      case $option in
        --job-name=* | --nodes=* | --nslots=* | --time-limit=*s | --cores-per-slot=* | --gpus-per-slot=* | --exclusive | --output=* | --error=* | \
          --dependency=* | --bank=* | --queue=* | --requires=*) ;;
        *) echo "flux batch: directive $option" >&2; exit 2 ;;
      esac
    done <"$HOME/directives"
    printf '\xc6\x922vWXy%s\n' "$(grep -c '^flux batch' "$HOME/calls")"
    ;;
esac
SH
# bsub: reads the script on its standard input
program bin/bsub <<'SH'
echo "bsub $* (link ${HORTATOR_LINK:-1})" >>"$HOME/calls"
[ $# = 0 ] || [[ $# = 2 && $1 = -w && $2 =~ ^ended\([0-9]+\)$ ]] || { echo "bsub: $*" >&2; exit 255; }
sed -n 's/^#BSUB //p' >"$HOME/directives"
while read -r option _; do
  case $option in -J | -n | -R | -W | -L | -o | -e | -gpu | -x | -w | -P | -q | -U | -B | -N | -u) ;; *) echo "Bad option $option" >&2; exit 255 ;; esac
done <"$HOME/directives"
echo 'This cluster is down on Monday.'
echo "Job <$((100 + $(grep -c '^bsub' "$HOME/calls")))> is submitted to default queue <normal>."
SH
program bin/blaunch <<'SH'
echo "blaunch $*" >>"$HOME/calls"
SH
program sge_qsub <<'SH'
echo "qsub $*" >>"$HOME/calls"
script=${!#}
sed -n 's/^#\$ //p' "$script" >"$HOME/directives"
while read -r option _; do
  case $option in -N | -S | -cwd | -r | -l | -pe | -t | -tc | -hold_jid | -j | -o | -e | -P | -q | -ar | -m | -M) ;; *) echo "qsub: Unknown option $option" >&2; exit 1 ;; esac
done <"$HOME/directives"
number=$((200 + $(grep -c '^qsub' "$HOME/calls")))
if grep -q '^-t' "$HOME/directives"; then echo "$number.1-4:1"; else echo "$number"; fi
SH
program train <<'SH'
printf '%s\n' "$@" >seen
SH
echo 'host1
host1
host2
host2' >lsf_hosts
hostname >here
job() { "$hortator" job --name t "$@" 2>err; }
run_flux() { FLUX_URI=local:///x HORTATOR_LINK=${LINK:-1} bash "$1" >"$work/out" 2>&1; }
run_lsf() { LSB_JOBID=${ID:-7} LSB_JOBINDEX=${TASK:-0} LSB_DJOB_HOSTFILE=$work/here LS_SUBCWD=$PWD HORTATOR_LINK=${LINK:-1} bash "$1" >"$work/out" 2>&1; }
run_sge() {
  echo "$(hostname) 2 all.q@x UNDEFINED" >pe
  JOB_ID=${ID:-9} SGE_TASK_ID=${TASK:-undefined} PE_HOSTFILE=$work/pe SGE_O_WORKDIR=$PWD HORTATOR_LINK=${LINK:-1} bash "$1" >"$work/out" 2>&1
}

# Rendered scripts pass shellcheck; hostile arguments are neither run nor changed.
hostile=('a b' "it's" '"x"' '$(touch owned)' '`touch owned`' $'two\nlines' '; touch owned' '*' '' 'a\b' '#x' '-n' 'a@program@b' '> owned')
for scheduler in flux lsf sge; do
  job --scheduler "$scheduler" -n 1 --env "FABRIC=${hostile[3]}" --module "${hostile[0]}" -- ./train "${hostile[@]}" >job.sh || wrong "$scheduler: $(<err)"
  if command -v shellcheck >/dev/null; then shellcheck -x -e SC2016 job.sh || wrong "shellcheck of $scheduler"; fi
  rm -rf seen owned runs
  "run_$scheduler" job.sh || wrong "$scheduler with hostile arguments ended with $?: $(<out)"
  [ "$(<seen)" = "$(printf '%s\n' "${hostile[@]}")" ] || wrong "$scheduler: the program got $(<seen)"
  [ ! -e owned ] || wrong "$scheduler: a word was run"
  for field in account queue name run-dir directive; do
    for word in "${hostile[@]:0:7}"; do
      "$hortator" job --scheduler "$scheduler" -n 1 "--$field=$word" -- ./train >/dev/null 2>err
      [ $? = 2 ] || wrong "$scheduler: --$field '$word' was not refused: $(<err)"
    done
  done
done
[ ! -e owned ] || wrong 'a word of a directive was run'

# has LINE...: the directives of the last job have these lines
has() { for line in "$@"; do grep -qxF -- "$line" directives || wrong "the directive $line is missing: $(<directives)"; done; }
chain() { # SCHEDULER OPTION...: a chain of three jobs, submitted
  rm -f calls
  job --scheduler "$1" --nodes 2 --ranks-per-node 4 --threads 8 --time 01:30:30 --queue q --account a --chain 3 --submit "${@:2}" -- ./train >out || wrong "$1: $(<err)"
}
chain flux --gpus-per-node 4
has --nodes=2 --nslots=2 --cores-per-slot=32 --gpus-per-slot=4 --time-limit=5430s --bank=a --queue=q
grep -q 'flux batch --dependency=afterany:ƒ2vWXy2 --env=HORTATOR_LINK=3 ' calls || wrong "the third waits for the second: $(<calls)"
chain lsf --gpus-per-node 4 --mem 64G --mail u@x.org
has '-J t' '-n 64' '-R span[ptile=32]' '-W 1:31' '-gpu num=4' '-R rusage[mem=65536MB/host]' '-P a' '-q q' '-N' '-u u@x.org'
grep -q 'bsub -w ended(102) (link 3)' calls || wrong "the third waits for the second: $(<calls)"
ln -s ../sge_qsub bin/qsub
chain sge --parallel-environment mpi --mem 64G --mail u@x.org
has '-N t' '-pe mpi 64' '-l h_rt=01:30:30' '-l h_vmem=2048M' '-P a' '-q q' '-m ae' '-M u@x.org' '-j y'
grep -q 'qsub -terse -hold_jid 202 -v HORTATOR_LINK=3 ' calls || wrong "the third waits for the second: $(<calls)"

# dependencies and arrays
job --scheduler lsf -n 2 --threads 1 --dependency afterok:12 --array 0-3%2 --run-dir runs/array --submit -- ./train >out || wrong "lsf: $(<err)"
has '-w done(12)' '-J t[1-4]%2'
job --scheduler sge -n 2 --threads 1 --parallel-environment mpi --dependency afterany:12 --array 0-3%2 --submit -- ./train >out || wrong "sge: $(<err)"
has '-hold_jid 12' '-t 1-4' '-tc 2'
for scheduler in lsf sge; do
  job --scheduler "$scheduler" -n 1 --array 0-3 --run-dir runs/array -- ./train >job.sh || wrong "$scheduler: $(<err)"
  TASK=3 "run_$scheduler" job.sh || wrong "$scheduler: the task ended with $?: $(<out)"
  [ -d runs/array/2/jobs ] || wrong "$scheduler: the third task is 2 of the run: $(find runs/array -maxdepth 1)"
  rm -r runs/array
done
for try in '--scheduler flux --array 0-3' '--scheduler flux --mem 4G' '--scheduler lsf --array 1-4' '--scheduler lsf --qos x' '--scheduler lsf --dependency singleton' \
  '--scheduler sge' '--scheduler sge --parallel-environment mpi --dependency afterok:3' '--scheduler sge --parallel-environment mpi --gpus-per-node 2' '--scheduler lsf --spare-nodes 1'; do
  # shellcheck disable=SC2086
  job $try -n 2 --threads 1 -- ./train >out
  [ $? = 2 ] || wrong "$try was not refused: $(<err)"
  grep -qE 'Flux|LSF|Grid Engine|--parallel-environment|--dependency' err || wrong "$try: $(<err)"
done

# A stopped run is 75, and the next job of the chain resumes; one that has finished ends the chain.
program train <<'SH'
mkdir -p runs/train/checkpoint
echo "$HORTATOR_LINK" >>links
[ "${MODE:-}" != stop ] || { touch runs/train/checkpoint/state.h5; printf 'runs/train\n\nstopped\n' >"$HORTATOR_RUN_NOTE"; }
SH
for scheduler in flux lsf sge; do
  rm -rf runs links
  job --scheduler "$scheduler" -n 1 --chain 3 --submit -- ./train >out 2>err || wrong "$scheduler: $(<err)"
  script=$(sed -n '1s/^submitted: [^ ]*  //p' out)
  MODE=stop "run_$scheduler" "$script"
  [ $? = 75 ] || wrong "$scheduler: stopped is 75: $(<out)"
  ID=8 LINK=2 "run_$scheduler" "$script" || wrong "$scheduler: the second job: $(<out)"
  ID=9 LINK=3 "run_$scheduler" "$script" || wrong "$scheduler: the third job: $(<out)"
  grep -q 'nothing is left to do' out || wrong "$scheduler: the third job has nothing to do: $(<out)"
  [ "$(wc -l <links)" = 2 ] || wrong "$scheduler: two jobs were to run the program"
done
# a signal to the script reaches the ranks as the warning, and a deleted job ends its chain
program train <<'SH'
trap 'touch warned; exit 0' USR1
printf 'runs/train\n' >"$HORTATOR_RUN_NOTE"
touch began
for i in $(seq 100); do /bin/sleep 0.1; done
SH
for case in flux:HUP flux:TERM lsf:INT lsf:TERM sge:TERM; do
  scheduler=${case%:*}
  rm -rf runs warned began
  job --scheduler "$scheduler" -n 1 --run-dir runs/train --chain 2 -- ./train >job.sh 2>err || wrong "$scheduler: $(<err)"
  # as a scheduler does it: in a session of its own, and with signals as a terminal has them
  setsid env FLUX_URI=local:///x LSB_JOBID=7 LSB_DJOB_HOSTFILE="$work/here" JOB_ID=9 PE_HOSTFILE="$work/pe" \
    python3 -c 'import os, signal; signal.signal(signal.SIGINT, signal.SIG_DFL); os.execvp("bash", ["bash", "job.sh"])' >out 2>&1 &
  script=$!
  for _ in $(seq 100); do [ -e began ] && break; sleep 0.1; done
  kill -s "${case#*:}" "$script"
  for _ in $(seq 100); do [ -e warned ] && break; sleep 0.1; done
  [ -e warned ] || wrong "$case did not reach the program: $(<out)"
  wait "$script"
  ls runs/train/jobs/*/cancelled.1 >/dev/null 2>&1 || wrong "$case: the chain was to end: $(<out)"
done

# hortator launch in their jobs
launch() { "$hortator" launch --dry-run "$@" 2>&1; }
unset HORTATOR_LAUNCHER
answer=$(FLUX_URI=local:///x launch --nodes 2 --ranks-per-node 4 --threads 8 --gpus-per-node 4 --prefix-output ./train)
[[ $answer == 'flux run '*'--nodes=2 --tasks-per-node=4 --cores=64 --gpus-per-node=4 --setopt=cpu-affinity=per-task --label-io '*'./train' ]] || wrong "flux run: $answer"
answer=$(FLUX_URI=local:///x launch --ranks-per-node 2 ./train)
[[ $answer == 'flux run '*'--ntasks=4 '* || $answer == *'--nodes=2 --tasks-per-node=2'* ]] || wrong "the ranks of two brokers: $answer"
for try in '--map-by node' '--hostfile here' '--log-dir logs' '--bcast'; do
  # shellcheck disable=SC2086
  answer=$(FLUX_URI=local:///x launch -n 2 $try ./train)
  [[ $answer == *'does not work with flux run'* ]] || wrong "flux run $try: $answer"
done
export HORTATOR_LAUNCHER=mpirun
answer=$(LSB_JOBID=7 LSB_DJOB_HOSTFILE=$work/lsf_hosts launch --ranks-per-node 2 ./train)
[[ $answer == *"--hostfile $work/lsf_hosts --mca plm_rsh_agent "*'/lsf_agent.sh'* && $answer == *'-n 4 '* ]] || wrong "LSF, two hosts: $answer"
answer=$(KNOWS=lsf LSB_JOBID=7 LSB_DJOB_HOSTFILE=$work/lsf_hosts launch --ranks-per-node 2 ./train)
[[ $answer != *--hostfile* ]] || wrong "an Open MPI that knows LSF: $answer"
mv bin/blaunch kept
answer=$(PATH=$work/bin:$clean_path LSB_JOBID=7 LSB_DJOB_HOSTFILE=$work/lsf_hosts launch --ranks-per-node 2 ./train)
[[ $answer == *'built without support for LSF, and there is no blaunch'* ]] || wrong "without blaunch: $answer"
mv kept bin/blaunch
printf 'host1 2 all.q@host1 UNDEFINED\nhost2 2 all.q@host2 UNDEFINED\n' >pe
answer=$(KNOWS=gridengine SGE_ROOT=/x JOB_ID=9 PE_HOSTFILE=$work/pe launch --ranks-per-node 2 ./train)
[[ $answer == *'mpirun -n 4 '* && $answer != *--hostfile* ]] || wrong "Grid Engine: $answer"
answer=$(SGE_ROOT=/x JOB_ID=9 PE_HOSTFILE=$work/pe launch --ranks-per-node 2 ./train)
[[ $answer == *'built without support for Grid Engine'* ]] || wrong "an Open MPI without Grid Engine: $answer"

# the agents of Open MPI, in the job's script
job --scheduler lsf -n 1 -- ./train >job.sh 2>err
cp train kept
program train </dev/null
rm -rf runs calls
run_lsf job.sh
grep -q -- '--hostfile runs\|--hostfile /' calls || wrong "the hosts are missing: $(<calls)"
agent=$(find runs -name agent)
"$agent" host2 'echo "a b"'
grep -q 'blaunch host2 /bin/sh -c echo "a b"' calls || wrong "the agent: $(<calls)"

# Grid Engine joins the words for a login shell, unless -noshell is given
cp bin/qrsh bin/qrsh.before 2>/dev/null
program bin/qrsh <<'SH'
while [[ $1 = -* ]]; do [ "$1" != -noshell ] || direct=1; shift; done
shift
if [ -n "${direct:-}" ]; then exec "$@"; else exec sh -c "$*"; fi
SH
job --scheduler sge --parallel-environment mpi -n 1 -- ./train >job.sh 2>err
rm -rf runs
run_sge job.sh
agent=$(find runs -name agent)
[ "$("$agent" host2 'echo "a  b"')" = 'a  b' ] || wrong "the words of Grid Engine's agent"
[ ! -e bin/qrsh.before ] || mv bin/qrsh.before bin/qrsh

# the scheduler whose commands are on PATH
for at_hand in bsub flux; do
  rm -rf only_one; mkdir only_one
  for name in env bash mkdir; do ln -s "$(command -v $name)" only_one; done
  cp "bin/$at_hand" bin/mpirun bin/ompi_info only_one
  code=0; PATH=$work/only_one "$hortator" sweep --over a=1,2 -n 1 -- ./train >out 2>err || code=$?
  grep -q 'there is no scheduler here' err && wrong "a sweep where there is $at_hand ran here"
  [ "$at_hand" != bsub ] || grep -q '^#BSUB -J.*\[1-2\]' out || wrong "a sweep with LSF: $(<out) $(<err)"
  [ "$at_hand" != flux ] || [ "$code" = 2 ] || wrong "a sweep with Flux: $(<err)"
done
rm -f bin/flux bin/bsub
PATH=$work/bin:/usr/bin:/bin SGE_ROOT=/x "$hortator" job -n 1 -- ./train >job.sh 2>err
if command -v sbatch >/dev/null; then grep -q 'Slurm, Grid Engine' err || wrong "two schedulers: $(<err)"; else grep -q '^#\$ -N' job.sh || wrong "Grid Engine is at hand: $(<err)"; fi

[ "$failures" = 0 ] || { echo "$failures wrong"; exit 1; }
