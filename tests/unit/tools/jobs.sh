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
  show) if [ "$2" = hostnames ]; then hostname; else printf '   JobState=%s\n   StartTime=x EndTime=%s Deadline=N/A\n   StdOut=%s/output\n' "${STATE:-RUNNING}" "$(date -d '+1 hour' +%Y-%m-%dT%H:%M:%S)" "$HOME"; fi ;;
esac
SH
program bin/sinfo </dev/null
program bin/sacct </dev/null
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
  case $option in -N | -l | -j | -k | -o | -e | -A | -q | -M | -m | -J | -W | -V) ;; *) echo "qsub: illegal option $option"; exit 1 ;; esac
done <"$HOME/directives"
folder=$(sed -n 's/^#PBS -o //p' "$script")
[ -z "$folder" ] || [ -d "$folder" ] || { echo "no folder $folder"; exit 1; }
number=$(($(cat "$HOME/number" 2>/dev/null || echo 0) + 1))
echo "$number" >"$HOME/number"
echo 'Budget: 500 hours are left'
echo "$number.server"
SH
program bin/sbatch <<'SH'
printf '%s\n' "sbatch $*" >>"$HOME/calls"
echo 'sbatch: note: 3 nodes are free'
echo '41;cluster'
SH
program bin/pbs_tmrsh </dev/null
program train <<'SH'
printf '%s\n' "$@" >seen
SH

job() { "$hortator" job --name t "$@" 2>err; }
clean() { shellcheck -x -e SC2016 "$1" || wrong "shellcheck of $2"; bash -n "$1" || wrong "syntax of $2"; }
run_slurm() { SLURM_JOB_ID=41 SLURM_JOB_NODELIST=here SLURM_NNODES=1 bash "$1" >out 2>&1; }
run_pbs() { hostname >"$work/nodes"; HORTATOR_LINK=${LINK:-1} PBS_JOBID=${ID:-1.server} PBS_O_WORKDIR=$PWD PBS_NODEFILE=$work/nodes bash "$1" >"$work/out" 2>&1; }

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
job --scheduler pbs --nodes 2 --ranks-per-node 4 --gpus-per-node 4 --queue debug --chain 3 --submit -- ./train >out || wrong "qsub: $(<err)"
[ "$(grep -c '^qsub' calls)" = 3 ] || wrong 'a chain of three is three jobs'
grep -q 'qsub -W depend=afterany:2.server' calls || wrong 'the third waits for the second'
grep -q 'select=2:ncpus=4:mpiprocs=4:ompthreads=1:ngpus=4' directives || wrong "directives: $(<directives)"
grep -q 'place=scatter' directives || wrong "two chunks may land on one node: $(<directives)"
grep -q -- '-q debug' directives || wrong "the queue debug: $(<directives)"
# two submissions in one second have a folder each
for _ in 1 2 3; do "$hortator" job --scheduler slurm --name t -n 1 --run-dir runs/same --submit -- ./train >/dev/null 2>&1 & done
wait
[ "$(find runs/same/jobs -name job.sh | wc -l)" = 3 ] || wrong 'three jobs are to have three scripts'
rm -f calls
job --scheduler slurm -n 1 --chain 2 --submit -- ./train >out || wrong "sbatch: $(<err)"
grep -q 'sbatch --parsable --dependency=afterany:41' calls || wrong 'the second waits for the first'

# A stopped Slurm job is requeued: a limited number of times, and only if it makes progress.
program train <<'SH'
mkdir -p runs/train/checkpoint
case $MODE in
  stop) touch runs/train/checkpoint/state.h5; exit 75 ;;
  idle) mkdir -p "$HORTATOR_RUN_DIR/logs"; touch "$HORTATOR_RUN_DIR/logs/x"; exit 75 ;;
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
# the name of the run folder itself may contain the word
"$hortator" job --scheduler slurm -n 2 --threads 1 --requeues 4 --run-dir runs/checkpointing -- ./train >named.sh 2>err
for _ in once twice; do rm -f calls; sleep 1; MODE=idle run_slurm named.sh; done
! requeued || wrong 'a run folder with the word checkpoint in its name'
rm -rf runs/checkpointing
fresh
[ "$(MODE=fail code run_slurm job.sh)" = 1 ] || wrong 'a failure keeps its code'
! requeued || wrong 'a failure is not requeued'
grep -q '"rank": 3' out || wrong "the rank is not named: $(<out)"
fresh --max-restarts 2
MODE=fail run_slurm job.sh
[ "$(grep -c './train$' calls)" = 3 ] || wrong "two restarts are three runs: $(<calls)"
# where the command is at hand, the job asks it first
program bin/hortator <<'SH'
echo "asked: $* " >>calls
echo 'reason     the disk is full'
exit "$WHY"
SH
fresh --max-restarts 2
WHY=1 MODE=fail run_slurm job.sh
[ "$(grep -c './train$' calls)" = 1 ] || wrong "no restart can help: $(<calls)"
grep -q 'the job is not restarted: the disk is full' out || wrong "the reason is missing: $(<out)"
fresh --max-restarts 2
WHY=75 MODE=fail run_slurm job.sh
[ "$(grep -c './train$' calls)" = 3 ] || wrong "a restart may help: $(<calls)"
rm bin/hortator
fresh --max-restarts 2
MODE=usage run_slurm job.sh
[ "$(grep -c './train$' calls)" = 1 ] || wrong 'wrong usage is not tried again'
fresh
OUTPUT=$work/output MODE=oom run_slurm job.sh
grep -q 'OOM' out || wrong "an OOM kill is not named: $(<out)"

# Open MPI's reports after an error that a rank has reported itself are kept out of the log; of a killed rank, they become one line and
# failure.json. Without either they are shown.
rule=$(printf '%074d' 0)
export RULE=${rule//0/-}
program train <<'SH'
echo "$RULE" >&2; echo 'a table of the program' >&2; echo "$RULE" >&2
[ "$MODE" != own ] || { mkdir -p runs/train; echo '{"rank": 3, "problem": "no"}' >runs/train/failure.json; }
echo '[n1:77] [[23198,0],0] ORTE_ERROR_LOG: Data unpack would read past end of buffer in file x.c at line 1' >&2
if [ "$MODE" = killed ]; then
  mkdir -p runs/train/status; printf '%s\n' '{"rank":0,"phase":"training"}' '{"rank":1,"phase":"saving"}' >runs/train/status/ranks.jsonl
  printf '%s\nmpirun noticed that process rank 1 with PID 12 on node n2 exited on signal 11 (Segmentation fault).\n%s\n' "$RULE" "$RULE" >&2
  exit 139
fi
[ "$MODE" != task ] || { echo 'srun: error: n3: task 5: Killed' >&2; exit 137; }
printf '%s\nPrimary job  terminated normally, but 1 process returned\na non-zero exit code.\n%s\nlast' "$RULE" "$RULE" >&2
exit 1
SH
fresh
MODE=own run_slurm job.sh
! grep -qE 'Primary job|ORTE_ERROR' out || wrong "Open MPI's reports are in the log: $(<out)"
[ "$(grep -c -- "^$RULE\$" out)" = 2 ] || wrong "the lines of the program have changed: $(<out)"
grep -q '^last' out || wrong 'the last line is missing'
fresh
MODE=none run_slurm job.sh
if ! grep -q 'Primary job' out || ! grep -q 'ORTE_ERROR' out; then wrong "nothing explains the end: $(<out)"; fi
fresh
MODE=killed run_slurm job.sh
grep -q 'rank 1 (n2): Killed by signal 11 (SIGSEGV); its last status: saving' out || wrong "a killed rank: $(<out)"
grep -q '"rank": 1, "host": "n2", "exit_code": 139' runs/train/failure.json || wrong 'a killed rank is not recorded'
! grep -q 'noticed that' out || wrong "Open MPI's report is shown as well: $(<out)"
# a rank that leaves without MPI_Finalize; and one that has printed its problem, but could not write failure.json
program train <<'SH'
[ "$MODE" != unwritable ] || echo 'hortator: rank 3 (n1): Another run uses the folder' >&2
echo '[n1:77] 1 more process has sent help message help-mpi-api.txt / mpi-abort' >&2
echo '[n1:77] Set MCA parameter "orte_base_help_aggregate" to 0 to see all help / error messages' >&2
printf '%s\nmpirun has exited due to process rank 1 with PID 0 on\nnode n2 exiting improperly. There are three reasons this could occur:\n%s\n' "$RULE" "$RULE" >&2
exit 1
SH
fresh
MODE=improper run_slurm job.sh
grep -q 'rank 1 (n2): Its process has exited without finalising MPI' out || wrong "a rank that left: $(<out)"
grep -q '"rank": 1, "host": "n2", "exit_code": 1,' runs/train/failure.json || wrong 'a rank that left is not recorded'
! grep -qE 'improperly|help message|MCA' out || wrong "Open MPI's report is shown as well: $(<out)"
fresh
MODE=unwritable run_slurm job.sh
! grep -qE 'improperly|help message|MCA' out || wrong "Open MPI's report after the rank's own: $(<out)"
[ ! -e runs/train/failure.json ] || wrong 'a second cause is recorded'
program train <<'SH'
echo 'srun: error: n3: task 5: Killed' >&2; exit 137
SH
fresh
MODE=task run_slurm job.sh
grep -q 'srun: error: n3: task 5: Killed' out || wrong "srun's line is gone: $(<out)"
grep -q '"rank": 5, "host": "n3", "exit_code": 137, "problem": "Killed by signal 9 (SIGKILL), often' runs/train/failure.json || wrong "a killed task: $(<out)"

# The warning reaches the program; the job waits until the program has ended.
program train <<'SH'
trap 'touch warned; /bin/sleep 0.5; mkdir -p runs/train/checkpoint; touch runs/train/checkpoint/x; exit 75' USR1
echo runs/train >"$HORTATOR_RUN_NOTE"
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

# A warning waits for a program that has not begun: it would end it.
program train <<'SH'
trap '[ -e begun ] || exit 1; mkdir -p runs/train/checkpoint; touch runs/train/checkpoint/x; exit 75' USR1
kill -USR1 "$JOB"
/bin/sleep 0.6; touch begun; echo runs/train >"$HORTATOR_RUN_NOTE"
for _ in $(seq 50); do /bin/sleep 0.1; done
exit 1
SH
fresh
printf '%s\n' 'export JOB=$$' | sed -i '/^set -u$/r /dev/stdin' job.sh
[ "$(code run_slurm job.sh)" = 75 ] || wrong "warned before it has begun: $(<out)"
rm -f begun

# PBS: the script's own timer warns; jobs of a chain after the last useful one exit at once.
program train <<'SH'
echo start >>starts
trap 'mkdir -p runs/train/checkpoint; touch runs/train/checkpoint/x; exit 75' USR1
echo runs/train >"$HORTATOR_RUN_NOTE"
[ "$(wc -l <starts)" -lt 2 ] || exit 0
[ "$HORTATOR_DEADLINE" -gt 0 ] || exit 1
for _ in $(seq 50); do /bin/sleep 0.1; done
exit 1
SH
rm -rf runs starts; mkdir runs
job --scheduler pbs -n 1 --time 00:00:03 --warning-seconds 2 -- ./train >job.sh || wrong "$(<err)"
[ ! -e runs/train/jobs ] || wrong 'a printed script has made a folder'
"$hortator" job --name t --scheduler pbs -n 1 --time 00:00:03 --warning-seconds 2 --chain 3 --submit -- ./train >out 2>err || wrong "$(<err)"
chained=$(ls runs/train/jobs/*/job.sh)
[ "$(ID=2.server code run_pbs "$chained")" = 75 ] || wrong "the clock did not warn: $(<out)"
[ "$(LINK=2 ID=3.server code run_pbs "$chained")" = 0 ] || wrong "the second link: $(<out)"
[ "$(LINK=3 ID=4.server code run_pbs "$chained")" = 0 ] || wrong "the third link: $(<out)"
[ "$(wc -l <starts)" = 2 ] || wrong 'the third link had nothing to do'
grep -q 'nothing is left to do' out || wrong "$(<out)"
[ "$(find "$(dirname "$chained")" -name 'environment.*.txt' | wc -l)" = 2 ] || wrong 'each link has an environment file'

# A printed script has no memory of other jobs: a second job and the tasks of an array run, each with its own records.
program train <<'SH'
echo "$HORTATOR_RUN_DIR $HORTATOR_STOP_MARGIN $((HORTATOR_DEADLINE - $(date +%s))) $OMP_NUM_THREADS $OMPI_MCA_odls_base_sigkill_timeout" >>starts
SH
rm -rf runs starts; mkdir runs
job --scheduler pbs -n 1 --time 00:10:00 -- ./train >job.sh || wrong "$(<err)"
for id in 1.server 2.server; do ID=$id run_pbs job.sh; done
PBS_ARRAY_INDEX=7 ID='5[7].server' run_pbs job.sh
[ "$(cut -d' ' -f1 starts | xargs)" = 'runs/train runs/train runs/train/7' ] || wrong "a job did nothing: $(<out) $(<starts)"
for records in runs/train/jobs/1.server runs/train/jobs/2.server runs/train/7/jobs/5_7_.server; do [ -d "$records" ] || wrong "no $records"; done
[ "$(tail -n 1 starts | cut -d' ' -f2,4,5)" = '60s 1 8' ] || wrong "margin, threads and mpirun's patience: $(<starts)"
# A late warning is late for should_stop(), too: of one minute, all but the last 20 s are for steps.
rm -f starts
job --scheduler pbs -n 1 --time 00:01:00 --warning-seconds 20 -- ./train >job.sh; run_pbs job.sh
read -r _ margin left _ <starts
if [ "$margin" != 10s ] || [ "$left" -lt 45 ] || [ "$left" -gt 50 ]; then wrong "margin $margin, left $left: $(<out)"; fi
rm -f starts
job --scheduler slurm -n 1 --warning-seconds 20 -- ./train >job.sh; run_slurm job.sh
grep -q ' 20s ' starts || wrong "Slurm: $(<starts)"

# A script runs in the folder in which it was written, wherever it is submitted; a copy on a machine without that folder in that of qsub.
mkdir elsewhere
job --scheduler pbs -n 1 -- ./train >job.sh
rm -f starts; (cd elsewhere && run_pbs ../job.sh); [ -e starts ] || wrong "submitted elsewhere: $(<out)"
sed "s#^cd $work #cd /absent #" job.sh >elsewhere/copy.sh; cp train elsewhere
(cd elsewhere && run_pbs copy.sh); [ -e elsewhere/starts ] || wrong "a copy: $(<out)"
! grep -q '^#PBS -o' job.sh || wrong 'a printed script names a folder that may not exist'
job --scheduler slurm -n 1 -- ./train >job.sh
grep -q '^#SBATCH --output=%x-%j.out$' job.sh || wrong 'the output of a printed script'
rm -f starts; (cd elsewhere && SLURM_JOB_ID=41 SLURM_JOB_NODELIST=here SLURM_NNODES=1 bash ../job.sh >/dev/null 2>&1); [ -e starts ] || wrong 'sbatch elsewhere'
rm -f starts
SLURM_ARRAY_JOB_ID=40 SLURM_ARRAY_TASK_ID=2 run_slurm job.sh
grep -q '^runs/train/2 ' starts || wrong "a task of an array: $(<out)"
[ -d runs/train/2/jobs/40_2 ] || wrong "no records of a task: $(find runs)"

# A program that does not exist: a warning for a script that is printed, an error for one that is submitted.
job --scheduler slurm -n 1 -- ./tain >job.sh || wrong 'a script may be printed before the program is built'
grep -q "warning: No program './tain'" err || wrong "no warning: $(<err)"
job --scheduler slurm -n 1 --submit -- ./tain >/dev/null; grep -q "No program './tain'" err || wrong "$(<err)"

# Without --scheduler, sbatch beside PBS's qsub leaves it open; beside Slurm's own qsub it does not.
"$hortator" job -n 1 -- ./train >job.sh 2>err || wrong "Slurm's qsub: $(<err)"
grep -q '^#SBATCH' job.sh || wrong 'sbatch is Slurm'
mkdir both; program both/qsub <<'SH'
echo 'pbs_version = 23.06.06'
SH
PATH=$work/both:$PATH "$hortator" job -n 1 -- ./train >job.sh 2>err; [ $? = 2 ] || wrong 'two schedulers'
grep -q 'several schedulers are on PATH: Slurm, PBS' err || wrong "$(<err)"

# Secrets are not in the records: names in any case, values of several lines, passwords in addresses.
job --scheduler pbs -n 1 -- ./train >job.sh
rm -rf runs
PBS_JOBCOOKIE=s3cr3t my_token=$'a\ns3cr3t' http_proxy=http://u:s3cr3t@proxy:80/ run_pbs job.sh
grep -q 'PBS_JOBCOOKIE=(not shown)' runs/train/jobs/1.server/environment.1.server.0.txt || wrong 'the cookie is to be named'
! grep -rq s3cr3t runs || wrong "a secret: $(grep -rh s3cr3t runs)"

# Under mpirun the ranks of a stopped run leave with the code that the script asks for, and the note says that the run has stopped.
program train <<'SH'
mkdir -p runs/train/checkpoint; touch runs/train/checkpoint/x
printf 'runs/train\n\n%s\n' "$1" >"$HORTATOR_RUN_NOTE"
exit "$HORTATOR_STOPPED_CODE"
SH
job --scheduler pbs -n 1 -- ./train stopped >job.sh
[ "$(code run_pbs job.sh)" = 75 ] || wrong "stopped with code 0: $(<out)"
! grep -q 'finished' out || wrong "a stopped run has finished: $(<out)"
job --scheduler pbs -n 1 -- ./train '' >job.sh
[ "$(code run_pbs job.sh)" = 0 ] || wrong "finished with code 0: $(<out)"

# A job that is deleted before the program has begun gets no USR1, which it would not survive.
program train <<'SH'
trap 'echo USR1 >got; exit 1' USR1; trap 'echo TERM >got; exit 1' TERM
kill -TERM "$(cat shell)"
for _ in $(seq 50); do /bin/sleep 0.1; done
SH
job --scheduler pbs -n 1 -- ./train >job.sh
printf '%s\n' 'echo $$ >shell' | sed -i '/^set -u$/r /dev/stdin' job.sh
run_pbs job.sh
[ "$(cat got)" = TERM ] || wrong "deleted before it has begun: $(<out)"

# qdel of a running link ends the chain; a link that PBS runs again continues.
program train <<'SH'
echo start >>starts
trap 'mkdir -p runs/train/checkpoint; touch runs/train/checkpoint/x; exit 75' USR1 TERM
echo runs/train >"$HORTATOR_RUN_NOTE"
/bin/sleep 0.2
kill -TERM "$(cat shell)"
for _ in $(seq 50); do /bin/sleep 0.1; done
exit 1
SH
rm -rf runs starts
"$hortator" job --name t --scheduler pbs -n 1 --time 01:00:00 --chain 2 --submit -- ./train >out 2>err || wrong "$(<err)"
chained=$(ls runs/train/jobs/*/job.sh)
printf '%s\n' 'echo $$ >shell' | sed -i '/^set -u$/r /dev/stdin' "$chained"
ID=8.server run_pbs "$chained"
LINK=2 ID=9.server run_pbs "$chained"
grep -q 'job 1 of the chain was cancelled' out || wrong "no message: $(<out)"
[ "$(wc -l <starts)" = 1 ] || wrong "the link after a deleted one has started: $(<out)"
ID=8.server run_pbs "$chained"
[ "$(wc -l <starts)" = 2 ] || wrong "a link that is run again does nothing: $(<out)"

# The same under Slurm; a link that was cancelled before it started also ends the chain. Its script tells by its state that it was cancelled.
program train <<'SH'
echo start >>starts
[ -z "${KILL:-}" ] || { /bin/sleep 0.2; kill -TERM "$(cat shell)"; /bin/sleep 0.5; }
mkdir -p runs/train/checkpoint; touch runs/train/checkpoint/x; exit 75
SH
chain() {
  rm -rf runs starts calls
  "$hortator" job --name t --scheduler slurm -n 1 --requeues 0 --chain 3 --submit -- ./train >out 2>err || wrong "$(<err)"
  chained=$(ls runs/train/jobs/*/job.sh)
  printf '%s\n' 'echo $$ >shell' | sed -i '/^set -u$/r /dev/stdin' "$chained"
}
link() { SLURM_JOB_ID=4$1 SLURM_JOB_NODELIST=here SLURM_NNODES=1 bash "$chained" "$1" >out 2>&1; }
chain
grep -qE "sbatch --parsable --dependency=afterany:41 .*job.sh 3$" calls || wrong "the number of the third link: $(<calls)"
link 1; link 2; link 3
[ "$(wc -l <starts)" = 3 ] || wrong "three links are three runs: $(<out)"
chain
STATE=CANCELLED KILL=1 link 1; link 2; link 3
[ "$(wc -l <starts)" = 1 ] || wrong "a link after a cancelled one has started: $(<out)"
chain
link 1; link 3
[ "$(wc -l <starts)" = 1 ] || wrong "a link after one that was cancelled in the queue has started: $(<out)"
grep -q 'job 2 of the chain was cancelled' out || wrong "no message: $(<out)"
chain
STATE=COMPLETING KILL=1 link 1; link 2
[ "$(wc -l <starts)" = 1 ] || wrong "a link after one that was cancelled, and is completing, has started: $(<out)"
chain
link 1; STATE=CANCELLED link 2
[ "$(wc -l <starts)" = 1 ] || wrong "a link after one that Slurm shows as cancelled has started: $(<out)"
chain
KILL=1 link 1; link 2
[ "$(wc -l <starts)" = 2 ] || wrong "the end of the time is no scancel: $(<out)"

# The CPUs of a rank are its share of those that the scheduler reports, whatever this machine has; the most that a job may use is printed.
program train </dev/null
program bin/sinfo <<'SH'
echo "sinfo $*" >>"$HOME/calls"
printf '64|gpu:a100:4(S:0-1)\n128|(null)\n'
SH
cpus() { "$hortator" job --scheduler slurm "$@" -- ./train 2>err | sed -n 's/^#SBATCH --cpus-per-task=//p'; }
[ "$(cpus -n 4 --gpus-per-node 4)" = 16 ] || wrong "a share of 64 CPUs: $(<err)"
[ "$(cpus -n 2 --gpus-per-node a100:2)" = 16 ] || wrong "half of the GPUs, half of the CPUs: $(<err)"
[ "$(cpus -n 4)" = 16 ] || wrong 'the smallest node'
[ "$(cpus -n 4 --cpus-per-task 3)" = 3 ] || wrong 'what is given is not asked for'
[ "$(cpus -n 4 --site lumi-c)" = 32 ] || wrong 'a site profile outranks the scheduler'
rm calls; cpus -n 4 -p gpu >/dev/null; grep -q 'sinfo .*-p gpu' calls || wrong 'the nodes of the partition'
[ "$(cpus -n 4 --gpus-per-node 8)" = '' ] || wrong 'no node has 8 GPUs'
grep -q 'warning: the job asks for one CPU per rank' err || wrong "no warning: $(<err)"
"$hortator" job --scheduler slurm -n 4 --time 02:00:00 -- ./train >job.sh 2>err
grep -q 'the job may use up to 4 x 02:00:00 on 1 node = 8 node hours (3 requeues' err || wrong "the budget: $(<err)"
grep -q '^# It may use up to 4 x 02:00:00' job.sh || wrong 'the budget is not in the script'
rm -rf runs
"$hortator" job --scheduler slurm -n 4 --submit --dry-run --chain 2 -- ./train >job.sh 2>err; code=$?
[ "$code" = 0 ] || wrong "a dry run: $(<err)"
grep -q 'would run: sbatch --parsable --dependency=afterany:JOB1 .*/job.sh 2' err || wrong "a dry run: $(<err)"
[ ! -e runs/train/jobs ] || wrong "a dry run has made a folder"
"$hortator" job --scheduler slurm -n 4 --json -- ./train >job.json 2>err
grep -q '"cpus_per_rank": 16' job.json || wrong "JSON: $(<job.json)"
program bin/pbsnodes <<'SH'
printf 'n1\n     resources_available.ncpus = 32\n     resources_available.ngpus = 0\n'
SH
"$hortator" job --scheduler pbs --nodes 2 --ranks-per-node 4 -- ./train >job.sh 2>err; grep -q 'select=2:ncpus=32:mpiprocs=4:ompthreads=8$' job.sh || wrong "pbsnodes: $(<err)"
rm bin/pbsnodes

# A sweep is one array; each task has a program line and a run folder of its own.
program train <<'SH'
printf '%s ' "$HORTATOR_RUN_DIR" "$@" >>starts; echo >>starts
SH
rm -rf runs starts
"$hortator" sweep --name t --scheduler slurm --over lr=0.1,0.01 --over 'b=x y,z' --at-once 2 -n 1 -- ./train --seed 1 >job.sh 2>err || wrong "$(<err)"
grep -q '^#SBATCH --array=0-3%2$' job.sh || wrong "the array of a sweep: $(grep SBATCH job.sh)"
grep -q '^#SBATCH --output=%x-%A_%a.out$' job.sh || wrong 'a file of output for each task'
if command -v shellcheck >/dev/null; then clean job.sh sweep; fi
for task in 0 1 2 3; do SLURM_ARRAY_JOB_ID=40 SLURM_ARRAY_TASK_ID=$task run_slurm job.sh; done
sort starts >sorted
printf '%s \n' 'runs/train/0 --seed 1 --lr 0.1 --b x y' 'runs/train/1 --seed 1 --lr 0.1 --b z' \
  'runs/train/2 --seed 1 --lr 0.01 --b x y' 'runs/train/3 --seed 1 --lr 0.01 --b z' | diff - sorted || wrong 'the tasks of a sweep'
grep -q '"arguments":{"lr":"0.01","b":"z"}' runs/train/3/task.json || wrong 'the arguments of a task are not recorded'
run_slurm job.sh && wrong 'a sweep that is no array has run'
"$hortator" sweep --scheduler pbs --over lr=1,2 -n 1 -- ./train >job.sh 2>err; grep -q '^#PBS -J 0-1$' job.sh || wrong "a sweep of PBS: $(<err)"
for bad in '' '--over lr' '--over lr=1 --over lr=2' '--over lr=1 --array 0-3'; do
  # shellcheck disable=SC2086
  "$hortator" sweep --scheduler slurm $bad -n 1 -- ./train >/dev/null 2>err; [ $? = 2 ] || wrong "sweep $bad: $(<err)"
done
"$hortator" job --scheduler slurm -n 1 --directive --array=0-3 -- ./train >/dev/null 2>err; [ $? = 2 ] || wrong 'an array by --directive'
grep -q 'write to the same run folder' err || wrong "$(<err)"
program bin/sinfo </dev/null

# Nodes without a number of ranks: one on each, or one for each GPU, and it is printed.
"$hortator" job --scheduler slurm -N 2 -- ./train >job.sh 2>err || wrong "$(<err)"
grep -q 'one for each node, 2 ranks in all' err || wrong "the number of ranks is not printed: $(<err)"
grep -q '^#SBATCH --ntasks-per-node=1$' job.sh || wrong 'one rank on each node'
"$hortator" job --scheduler slurm -N 2 --gpus-per-node 4 -- ./train >job.sh 2>err || wrong "$(<err)"
grep -q 'one for each GPU, 8 ranks in all' err || wrong "the number of ranks is not printed: $(<err)"
"$hortator" job --scheduler slurm -N 2 -n 4 -- ./train >job.sh 2>err
! grep -q 'one for each' err || wrong "a number was given: $(<err)"

# Without a scheduler, the tasks of a sweep run one after the other here, each in its own run folder; a failed one does not end the sweep.
mkdir alone
for name in env bash mkdir; do ln -s "$(command -v $name)" alone; done
cp bin/mpirun alone
program train <<'SH'
printf '%s ' "$HORTATOR_RUN_DIR" "$@" >>starts; echo >>starts
[ "$2" != fail ] || exit 3
[ "$2" != stop ] || exit 75
SH
alone() { rm -rf runs starts; code=0; PATH=$work/alone "$hortator" sweep "$@" >out 2>err || code=$?; }
alone --over lr=0.1,fail,x -n 1 -- ./train
[ "$code" = 3 ] || wrong "a sweep with a failed task ended with $code: $(<err)"
printf '%s \n' 'runs/train/0 --lr 0.1' 'runs/train/1 --lr fail' 'runs/train/2 --lr x' | diff - starts || wrong 'the tasks of a local sweep'
grep -q '"arguments":{"lr":"fail"}' runs/train/1/task.json || wrong 'the arguments of a local task are not recorded'
grep -q '2 of 3 tasks finished' err || wrong "no summary: $(<err)"
grep -q 'there is no scheduler here' err || wrong "nothing reports where the tasks run: $(<err)"
alone --over lr=stop,x -n 1 --run-dir runs/own -- ./train
[ "$code" = 75 ] || wrong "a stopped sweep ended with $code: $(<err)"
[ "$(<starts)" = 'runs/own/0 --lr stop ' ] || wrong "a stop ends the sweep: $(<starts)"
alone --over lr=1,2 -n 1 --dry-run -- ./train
[ "$code" = 0 ] || wrong "a dry run: $(<err)"
[ "$(grep -c 'mpirun -n 1 .*HORTATOR_RUN_DIR=runs/train/[01] ' out)" = 2 ] || wrong "the commands of a dry run: $(<out)"
[ ! -e runs ] || wrong 'a dry run has made a folder'
alone --over lr=1,2 -n 1 --submit -- ./train
if [ "$code" != 2 ] || ! grep -q 'Neither sbatch, qsub, bsub nor flux' err; then wrong "no scheduler to submit to: $(<err)"; fi

# a folder for the output of ranks is made before they start; tasks of an array would share it
program train </dev/null
"$hortator" job --scheduler slurm -n 1 --log-dir logs/of_ranks -- ./train >job.sh 2>err || wrong "$(<err)"
rm -rf logs runs; run_slurm job.sh
[ -d logs/of_ranks ] || wrong "the folder of --log-dir: $(<out)"
for try in 'job --array 0-3' 'sweep --over lr=1,2'; do
  # shellcheck disable=SC2086
  "$hortator" $try --scheduler slurm -n 1 --log-dir logs -- ./train >job.sh 2>err
  [ $? = 2 ] || wrong "$try with --log-dir"
  grep -q 'log-dir does not work with an array or a sweep' err || wrong "$try: $(<err)"
done

# PBS passes no PATH: a program that is found by it gets its whole path. -V asks PBS for all variables.
mkdir tools; program tools/gpt </dev/null
PATH=$work/tools:$PATH "$hortator" job --scheduler pbs -V -n 1 -- gpt --tiny >job.sh 2>err || wrong "$(<err)"
grep -q "^program=($work/tools/gpt --tiny)" job.sh || wrong "the path of a program: $(grep ^program job.sh)"
grep -q '^#PBS -V$' job.sh || wrong "-V is lost: $(grep PBS job.sh) $(<err)"
PATH=$work/tools:$PATH "$hortator" sweep --scheduler pbs --over lr=1,2 -n 1 -- gpt >job.sh 2>err || wrong "$(<err)"
grep -q "program=($work/tools/gpt --lr 1)" job.sh || wrong "the path of a program in a sweep: $(grep program= job.sh)"
PATH=$work/tools:$PATH "$hortator" job --scheduler slurm -n 1 -- gpt >job.sh 2>err
grep -q '^program=(gpt)' job.sh || wrong "Slurm passes PATH on: $(grep ^program job.sh)"

# A program that no node sees is no matter of spare nodes.
job --scheduler pbs -n 1 -- ./absent >job.sh
[ "$(code run_pbs job.sh)" = 1 ] || wrong "an absent program: $(<out)"
grep -q 'no node sees the program ./absent' out || wrong "the hint: $(<out)"
! grep -q 'spare nodes' out || wrong "a wrong hint: $(<out)"

# A lost node is named, and a job whose nodes do not all answer is not restarted on them.
program train <<'SH'
echo start >>starts
printf '%s\n' 'ORTE has lost communication with a remote daemon.' '' '  HNP daemon   : [[1,0],0] on node pbs1' '  Remote daemon: [[1,0],1] on node pbs2' >&2
rm -f train; exit 205
SH
rm -rf runs starts
job --scheduler pbs -n 1 --max-restarts 2 -- ./train >job.sh
[ "$(code run_pbs job.sh)" = 205 ] || wrong "a lost node: $(<out)"
grep -q 'node pbs2 was lost' out || wrong "the lost node is not named: $(<out)"
grep -q 'the job is not restarted' out || wrong "no message: $(<out)"
[ "$(wc -l <starts)" = 1 ] || wrong "the job was restarted: $(<starts)"

# On a node with more CPUs than the job has of it, ranks are not bound: those of all such jobs would get the same first cores.
program train </dev/null
program bin/nproc <<'SH'
echo "${CPUS:-1}"
SH
bound() { rm -rf runs calls; job --scheduler pbs -n 1 "$@" -- ./train >job.sh; run_pbs job.sh || wrong "$(<out)"; grep './train$' calls | sed 's/ env .*//; s/ --hostfile [^ ]* --mca plm_rsh_agent [^ ]*//'; }
[ "$(CPUS=1 bound)" = 'mpirun -n 1 --map-by ppr:1:node' ] || wrong "a whole node: $(<calls)"
[ "$(CPUS=64 bound)" = 'mpirun -n 1 --map-by ppr:1:node --bind-to none' ] || wrong "a shared node: $(<calls)"
[ "$(CPUS=64 bound --threads 2)" = 'mpirun -n 1 --map-by ppr:1:node --bind-to none' ] || wrong "threads on a shared node: $(<calls)"
[ "$(CPUS=2 bound --threads 2)" = 'mpirun -n 1 --map-by ppr:1:node:PE=2' ] || wrong "threads on a whole node: $(<calls)"
[ "$(CPUS=64 bound --cpu-bind core)" = 'mpirun -n 1 --map-by ppr:1:node --bind-to core' ] || wrong "a chosen binding: $(<calls)"
rm bin/nproc

# Two hosts of PBS. pbs_tmrsh executes its words without a shell, and mpirun gives the agent one word.
program bin/ompi_info <<'SH'
echo mca:plm:rsh:version
SH
program bin/pbs_tmrsh <<'SH'
host=$1; shift
export REMOTE=$host
exec env -i PATH=/usr/bin:/bin REMOTE="$host" SLURMD_NODENAME="$host" HOME="$HOME" "$@"
SH
program bin/mpirun <<'SH'
[ "$1" != --version ] || { echo 'mpirun (Open MPI) 4.1.4'; exit; }
while [ $# -gt 0 ]; do
  case $1 in
    --mca) agent=$3; shift 3 ;;
    --hostfile) hosts=$2; shift 2 ;;
    -n) count=$2; shift 2 ;;
    --map-by | --bind-to | -x) shift 2 ;;
    -*) shift ;;
    *) break ;;
  esac
done
echo "$count" >>"$HOME/counts"
case $agent in /*) ;; *) echo "orted: $agent is not found"; exit 1 ;; esac
printf '%q ' "$@" >"$HOME/remote"
for host in $(sort -u "$hosts"); do
  "$agent" "$host" "cd '$PWD' ; SLURMD_NODENAME=$host ; export SLURMD_NODENAME ; bash '$HOME/remote'" || exit
done
SH
program train <<'SH'
command -v pbs_tmrsh >/dev/null && echo "$REMOTE" >>starts
SH
rm -rf runs starts
job --scheduler pbs --nodes 2 --ranks-per-node 1 -- ./train >job.sh
printf 'pbs1\npbs2\n' >two
two() { PBS_JOBID=3.server PBS_O_WORKDIR=$work PBS_NODEFILE=$work/two bash job.sh >out 2>&1; }
two || wrong "two hosts: $(<out)"
[ "$(xargs <starts)" = 'pbs1 pbs2' ] || wrong "two hosts started $(cat starts): $(<out)"
# A host that PBS has lost is left out of the restart: a spare one takes its place, otherwise there are fewer ranks.
program bin/pbsnodes <<'SH'
[ "$1" = -l ] && printf '%-20s %s\n' pbs2 state-unknown,down pbs7 offline
SH
program train <<'SH'
echo "$REMOTE" >>starts
[ -e failed ] || { touch failed; exit 205; }
SH
# lost WANTED OPTION...: WANTED has the hosts of all starts, and the ranks of all mpiruns
lost() {
  local wanted=$1
  shift
  rm -rf runs starts counts failed
  job --scheduler pbs --ranks-per-node 1 --max-restarts 1 "$@" -- ./train >job.sh
  two || wrong "a lost host: $(<out)"
  [ "$(xargs <starts) $(xargs <counts)" = "$wanted" ] || wrong "a lost host: started on $(xargs <starts), ranks $(xargs <counts): $(<out)"
}
lost 'pbs1 pbs1 2 2 1' --nodes 2
grep -q 'lost nodes: pbs2. Ranks of the next start: 1, nodes: 1' out || wrong "fewer ranks: $(<out)"
printf 'pbs1\npbs2\npbs3\n' >two
lost 'pbs1 pbs1 pbs3 3 2 2' --nodes 2 --spare-nodes 1
grep -q 'lost nodes: pbs2. Ranks of the next start: 2, nodes: 2' out || wrong "a spare host: $(<out)"
printf 'pbs1\npbs2\n' >two
rm bin/pbsnodes
# the same as at first with `hortator launch` in a script of the user's own, which asks PBS when the job ends and passes it to the ranks
program bin/qstat <<'SH'
printf '    Resource_List.walltime = 00:10:00\n    stime = %s\n' "$(LC_ALL=C date '+%a %b %d %H:%M:%S %Y')"
SH
program train <<'SH'
echo "$REMOTE $((HORTATOR_DEADLINE - $(date +%s)))" >>starts
SH
rm -f starts
PBS_JOBID=3.server PBS_NODEFILE=$work/two "$hortator" launch -n 2 ./train >out 2>&1 || wrong "launch on two hosts: $(<out)"
[ "$(cut -d' ' -f1 starts | xargs)" = 'pbs1 pbs2' ] || wrong "launch started $(cat starts): $(<out)"
read -r _ left <starts
if [ "$left" -le 590 ] || [ "$left" -gt 600 ]; then wrong "launch passes no end of the job: $(<starts)"; fi
# what mpirun says is shown, and too few hosts are named
program bin/mpirun <<'SH'
[ "$1" != --version ] || { echo 'mpirun (Open MPI) 4.1.4'; exit; }
echo 'mpirun: a reason'; exit 1
SH
two && wrong 'no node answers'
grep -q 'mpirun: a reason' out || wrong "mpirun's reason is hidden: $(<out)"
echo pbs1 >two; two && wrong 'one host is not two'
grep -q 'has 1 of 2 nodes' out || wrong "one host: $(<out)"
rm bin/ompi_info
cp bin/srun bin/mpirun

# What Open MPI has left in /dev/shm is removed, unless it is new or a process uses it.
touch -d '-5 minutes' "/dev/shm/vader_segment.test-$$.old"
touch "/dev/shm/vader_segment.test-$$.new"
job --scheduler pbs -n 1 -- ./train >job.sh; run_pbs job.sh || wrong "$(<out)"
[ ! -e "/dev/shm/vader_segment.test-$$.old" ] || wrong 'an old segment is still there'
[ -e "/dev/shm/vader_segment.test-$$.new" ] || wrong 'a new segment was removed'
rm -f "/dev/shm/vader_segment.test-$$."*

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
grep -q 'Neither sbatch, qsub, bsub nor flux\|hortator job' err || [ -x /usr/bin/sbatch ] || wrong "$(<err)"
job -n 5 --nodes 2 -- ./train >/dev/null; grep -q 'evenly' err || wrong "$(<err)"

[ "$failures" = 0 ] || { echo "$failures wrong"; exit 1; }
