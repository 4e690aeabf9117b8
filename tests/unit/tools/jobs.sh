#!/usr/bin/env bash
# hortator job with schedulers that only record their arguments: jobs.sh HORTATOR. Prints each failure and exits with 1.
# shellcheck disable=SC2016  # hostile arguments are not to be expanded
set -u
hortator=$1
# shellcheck source=tests/unit/tools/support.sh
. "$(dirname "$0")/support.sh"
wrong() { printf 'wrong: %s\n' "$*"; failures=$((failures + 1)); }
program() { { echo '#!/bin/bash'; cat; } >"$1"; chmod +x "$1"; }

# A Slurm and a PBS of one node each. srun and mpirun drop their own options and run the rest once.
mkdir bin runs
export PATH=$work/bin:$PATH HORTATOR_LAUNCHER=mpirun
for launcher in srun mpirun; do
  program "bin/$launcher" <<'SH'
[ "$1" != --version ] || { echo 'mpirun (Open MPI) 4.1.4'; exit; }
[ "$1" != --mpi=list ] || { echo 'pmix'; exit; }
echo "${0##*/} $*" >>"$HOME/calls"
while [ $# -gt 0 ]; do
  case $1 in
    -n | -N | --map-by | --bind-to | --hostfile | --exclude) shift 2 ;;
    --mca) shift 3 ;;
    -*) shift ;;
    *) break ;;
  esac
done
exec "$@"
SH
done
program bin/scontrol <<'SH'
echo "scontrol $*" >>"$HOME/calls"
case $1 in
  show) if [ "$2" = hostnames ]; then hostname; else echo "   StartTime=x EndTime=$(date -d '+1 hour' +%Y-%m-%dT%H:%M:%S) Deadline=N/A"; fi ;;
esac
SH
program bin/sinfo </dev/null
program bin/sleep <<'SH'
exec /bin/sleep "$(case $1 in 60) echo 0 ;; *) echo "$1" ;; esac)"
SH
program bin/qsub <<'SH'
printf '%s\n' "qsub $*" >>"$HOME/calls"
script=${!#}
[ -f "$script" ] || { echo "no script $script"; exit 1; }
grep '^#PBS ' "$script" >"$HOME/directives"
# as PBS does: every directive is an option that it knows
while read -r _ option _; do
  case $option in -N | -l | -j | -o | -A | -q | -M | -m) ;; *) echo "qsub: illegal option $option"; exit 1 ;; esac
done <"$HOME/directives"
folder=$(sed -n 's/^#PBS -o //p' "$script")
[ -d "$folder" ] || { echo "no folder $folder"; exit 1; }
number=$(($(cat "$HOME/number" 2>/dev/null || echo 0) + 1))
echo "$number" >"$HOME/number"
echo "$number.server"
SH
program bin/sbatch <<'SH'
printf '%s\n' "sbatch $*" >>"$HOME/calls"
echo '41;cluster'
SH
program bin/pbs_tmrsh </dev/null
program train <<'SH'
printf '%s\n' "$@" >seen
SH

job() { "$hortator" job --name t "$@" 2>err; }
clean() { shellcheck -x -e SC2016 "$1" || wrong "shellcheck of $2"; bash -n "$1" || wrong "syntax of $2"; }
run_slurm() { SLURM_JOB_ID=41 SLURM_JOB_NODELIST=here SLURM_NNODES=1 bash "$1" >out 2>&1; }
run_pbs() { hostname >nodes; PBS_JOBID=1.server PBS_O_WORKDIR=$work PBS_NODEFILE=$work/nodes bash "$1" >out 2>&1; }

# Rendered scripts pass shellcheck; hostile arguments are neither run nor changed.
hostile=('a b' "it's" '"x"' '$(touch owned)' '`touch owned`' $'two\nlines' '; touch owned' '*' '' 'a\b' '#x' '-n' 'a@program@b' '> owned')
for scheduler in slurm pbs; do
  job --scheduler "$scheduler" -n 1 --env "FABRIC=${hostile[3]}" --module "${hostile[0]}" -- ./train "${hostile[@]}" >job.sh || wrong "$scheduler: $(<err)"
  if command -v shellcheck >/dev/null; then clean job.sh "$scheduler"; fi
  rm -rf seen owned runs/train
  "run_$scheduler" job.sh || wrong "$scheduler with hostile arguments ended with $?: $(<out)"
  [ "$(<seen)" = "$(printf '%s\n' "${hostile[@]}")" ] || wrong "$scheduler: the program got $(<seen)"
  [ ! -e owned ] || wrong "$scheduler: a word was run"
done
for field in account queue qos constraint reservation licenses mail run-dir name directive; do
  for word in "${hostile[@]:0:7}"; do
    "$hortator" job --scheduler slurm -n 1 "--$field=$word" -- ./train >/dev/null 2>err
    [ $? = 2 ] || wrong "--$field '$word' was not refused: $(<err)"
    [ "$(wc -l <err)" -le 3 ] || wrong "--$field '$word': a long error"
  done
done
[ ! -e owned ] || wrong 'a word of a directive was run'

# --submit creates the output folder first; each job of a chain waits for the one before.
rm -f calls
job --scheduler pbs --nodes 2 --ranks-per-node 4 --gpus-per-node 4 --chain 3 --submit -- ./train >out || wrong "qsub: $(<err)"
[ "$(grep -c '^qsub' calls)" = 3 ] || wrong 'a chain of three is three jobs'
grep -q 'qsub -W depend=afterany:2.server' calls || wrong 'the third waits for the second'
grep -q 'select=2:ncpus=4:mpiprocs=4:ngpus=4' directives || wrong "directives: $(<directives)"
rm -f calls
job --scheduler slurm -n 1 --chain 2 --submit -- ./train >out || wrong "sbatch: $(<err)"
grep -q 'sbatch --parsable --dependency=afterany:41' calls || wrong 'the second waits for the first'

# A stopped Slurm job is requeued: a limited number of times, and only if it makes progress.
program train <<'SH'
mkdir -p runs/train/checkpoint
case $MODE in
  stop) touch runs/train/checkpoint/state.h5; exit 75 ;;
  idle) exit 75 ;;
  lost) touch runs/train/checkpoint/state.h5; echo '{"outcome": "stopped", "exit_code": 75}' >runs/train/outcome.json; exit 143 ;;
  fail) echo '{"rank": 3, "problem": "no"}' >runs/train/failure.json; exit 1 ;;
  oom) echo 'slurmstepd: error: Detected 1 oom_kill event in StepId=41.0.' >>"$OUTPUT"; exit 137 ;;
  usage) exit 2 ;;
esac
SH
fresh() { rm -rf runs calls; mkdir runs; job --scheduler slurm -n 1 --requeues 3 "$@" -- ./train >job.sh || wrong "$(<err)"; }
requeued() { grep -qx "scontrol requeue ${1:-41}" calls; }
code() { "$@"; echo $?; }
fresh
[ "$(MODE=stop code run_slurm job.sh)" = 75 ] || wrong 'stopped is 75'
requeued || wrong "stopped is requeued: $(<out)"
rm calls; SLURM_RESTART_COUNT=3 MODE=stop run_slurm job.sh
! requeued || wrong 'the fourth time is too much'
rm calls; SLURM_ARRAY_JOB_ID=40 SLURM_ARRAY_TASK_ID=2 MODE=stop run_slurm job.sh
requeued 40_2 || wrong 'of an array only the task is requeued'
fresh
MODE=lost run_slurm job.sh
requeued || wrong 'what the launcher lost is in outcome.json'
fresh
MODE=idle run_slurm job.sh
requeued || wrong 'once without a checkpoint may happen'
rm calls; sleep 1; MODE=idle run_slurm job.sh
! requeued || wrong 'twice without a checkpoint is enough'
grep -q 'two runs in a row' out || wrong "no word on it: $(<out)"
fresh
[ "$(MODE=fail code run_slurm job.sh)" = 1 ] || wrong 'a failure keeps its code'
! requeued || wrong 'a failure is not requeued'
grep -q '"rank": 3' out || wrong "the rank is not named: $(<out)"
fresh --max-restarts 2
MODE=fail run_slurm job.sh
[ "$(grep -c './train$' calls)" = 3 ] || wrong "two restarts are three runs: $(<calls)"
fresh --max-restarts 2
MODE=usage run_slurm job.sh
[ "$(grep -c './train$' calls)" = 1 ] || wrong 'wrong usage is not tried again'
fresh
records=$(sed -n 's/^records=//p' job.sh)
mkdir -p "$records"
OUTPUT=$records/41.out MODE=oom run_slurm job.sh
grep -q 'OOM' out || wrong "an OOM kill is not named: $(<out)"

# The warning reaches the program; the job waits until the program has ended.
program train <<'SH'
trap 'touch warned; /bin/sleep 0.5; mkdir -p runs/train/checkpoint; touch runs/train/checkpoint/x; exit 75' USR1
/bin/sleep 0.2
kill -USR1 "$JOB"
for _ in 1 2 3 4 5 6 7 8 9 10; do /bin/sleep 0.1; done
exit 1
SH
fresh
rm -f warned
printf '%s\n' 'export JOB=$$' | sed -i '/^set -u$/r /dev/stdin' job.sh
[ "$(code run_slurm job.sh)" = 75 ] || wrong "after a warning: $(<out)"
[ -e warned ] || wrong 'the warning did not reach the program'
requeued || wrong 'warned and stopped is requeued'

# PBS: the script's own timer warns; jobs of a chain after the last useful one exit at once.
program train <<'SH'
echo start >>starts
trap 'mkdir -p runs/train/checkpoint; touch runs/train/checkpoint/x; exit 75' USR1
[ "$(wc -l <starts)" -lt 2 ] || exit 0
[ "$HORTATOR_DEADLINE" -gt 0 ] || exit 1
for _ in $(seq 50); do /bin/sleep 0.1; done
exit 1
SH
rm -rf runs starts; mkdir runs
job --scheduler pbs -n 1 --time 00:00:03 --warning-seconds 2 -- ./train >job.sh || wrong "$(<err)"
[ "$(code run_pbs job.sh)" = 75 ] || wrong "the clock did not warn: $(<out)"
[ "$(code run_pbs job.sh)" = 0 ] || wrong "the second link: $(<out)"
[ "$(code run_pbs job.sh)" = 0 ] || wrong "the third link: $(<out)"
[ "$(wc -l <starts)" = 2 ] || wrong 'the third link had nothing to do'
grep -q 'nothing is left to do' out || wrong "$(<out)"
grep -q 'hostfile.*pbs_tmrsh' calls || command -v ompi_info >/dev/null || wrong 'no agent of PBS'

# A bad node is reported before the program starts.
rm -rf runs calls; mkdir runs
job --scheduler slurm -n 1 --gpus-per-node 2 -- ./train >job.sh
program bin/nvidia-smi <<'SH'
echo GPU-1
SH
[ "$(code run_slurm job.sh)" = 1 ] || wrong 'too few GPUs are no start'
grep -q "node $(hostname) is bad: has 1 of 2 GPUs" out || wrong "the bad node is not named: $(<out)"

# Missing and contradictory options
"$hortator" job -n 1 >/dev/null 2>err; [ $? = 2 ] || wrong 'no program'
PATH=/usr/bin:/bin "$hortator" job -n 1 -- ./train >/dev/null 2>err
grep -q 'Neither sbatch nor qsub\|hortator job' err || [ -x /usr/bin/sbatch ] || wrong "$(<err)"
job -n 5 --nodes 2 -- ./train >/dev/null; grep -q 'evenly' err || wrong "$(<err)"

[ "$failures" = 0 ] || { echo "$failures wrong"; exit 1; }
