#!/usr/bin/env bash
# drill.sh HORTATOR BINARIES: jobs of `hortator job`, on a real Slurm of two nodes. Runs under tests/tools/slurm-two-nodes.sh.
set -uo pipefail
hortator=$1 binaries=$2
for name in $(compgen -e | grep -E '^(HORTATOR|PBS|XDG|HF)_'); do unset "$name"; done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
mkdir memory
export HORTATOR_MEMORY_FOLDER=$work/memory
export HOME=$work
failures=0
failed() {
  echo "failed: $1"
  tail -n 40 run/jobs/*/*.out limit/run/jobs/*/*.out runs/*/jobs/*/*.out 2>/dev/null | sed 's/^/    /'
  failures=$((failures + 1))
}
expect() {
  if [ "$2" = "$3" ]; then ok "$1"; else failed "$1: expected $3, got $2" && sed 's/^/    /' "$4"; fi
}
ok() { echo "ok: $1"; }
job() { "$hortator" job --scheduler slurm --nodes 2 --ranks-per-node 2 "$@"; }
steps=1300 id=0 records=$work

# submit OPTION... -- PROGRAM...: submits a job; sets $id to its number and $records to its folder
submit() {
  local line
  line=$(job --submit "$@" 2>submit.err) || true
  [[ $line == 'submitted: '* ]] || { failed "not submitted: $line $(<submit.err)"; return 1; }
  line=${line#submitted: }
  id=${line%% *}
  records=$(dirname "${line##* }")
}
state() { scontrol show job "$id" 2>/dev/null | sed -n 's/.*JobState=\([A-Z_]*\).*/\1/p'; }
# await SECONDS: waits until the job has ended. A job that is being requeued may look ended for a moment, so several polls must agree.
await() {
  local i now ended=0
  for ((i = 0; i < $1 * 4; i++)); do
    now=$(state)
    case $now in
      '' | PENDING | RUNNING | COMPLETING | CONFIGURING | REQUEUED | SUSPENDED) ended=0 ;;
      *) ended=$((ended + 1)); [ "$ended" -lt 6 ] || return 0 ;;
    esac
    /bin/sleep 0.25
  done
  return 1
}
# running PATTERN: waits until its output has a line that matches
running() {
  local i
  for ((i = 0; i < 240; i++)); do
    grep -aqs "$1" "$records/$id.out" && return 0
    /bin/sleep 0.25
  done
  return 1
}

# Jobs that mostly wait for Slurm run beside those after them.

# A run that is not stopped, for comparison: long enough that the warning comes before its end
mkdir whole
(cd whole && srun --mpi=pmix -N2 --ntasks-per-node=2 "$binaries/stopping" "$steps" >../whole.out 2>&1) &
whole=$!

# A job that Slurm signals before its time limit saves, is requeued, resumes, and ends with the same result as the run that was not stopped.
# It has a folder of its own, because this program always runs in the project folder `run`.
mkdir limit
cd limit || exit 1
submit --name limit --time 00:02:00 --warning-seconds 118 --requeues 20 --run-dir run -- "$binaries/stopping" "$steps"
limit=("$id" "$PWD/$records")
cd ..

# A scaling study with one job per size: the last job writes the report.
study=$work/study
"$hortator" scale weak --scheduler slurm --nodes 1,2 --ranks-per-node 2 --repeats 1 --time 00:05:00 --out "$study" --submit -- \
  "$binaries/sleeping" weak 12 50 >study.out 2>&1 || failed "no study: $(<study.out)"

# A killed task ends the job, which is not requeued; the node of the task is reported.
submit --name killed --time 00:05:00 --run-dir run -- "$binaries/stopping" 4000
if running '^step 3$'; then
  pkill -9 -n -f "^$binaries/stopping 4000"
  await 60 || failed 'a killed task does not end the job'
  if ! grep -aq 'hortator job: requeued' "$records/$id.out" && grep -aqE 'n[12]: tasks? .*Killed' "$records/$id.out" && grep -aq 'hortator job: failed with code' "$records/$id.out"; then
    ok 'a killed task'
  else
    failed 'a killed task'
  fi
else
  failed 'a killed task: the run does not start'
fi
scancel "$id" 2>/dev/null
rm -rf run

# A task that throws is reported with rank and host; its code is that of the job.
submit --name throws --time 00:05:00 -- "$binaries/failing" one
await 60 || failed 'a throwing task does not end the job'
if grep -aq 'failed with code 1: .*"rank": 3,.*"host": "n2"' "$records/$id.out" && ! grep -aq 'hortator job: requeued' "$records/$id.out"; then
  ok 'a task that throws'
else
  failed 'a task that throws'
fi

# In an allocation srun starts ranks on both nodes, and each sees all GPUs of its node.
salloc --quiet -N2 -n4 "$hortator" launch "$binaries/place" >place.out 2>&1 || true
expect 'launch in an allocation' "$(grep -ac '^rank [0-3] of 4 ' place.out)" 4 place.out
mkdir no_pmi
cat >no_pmi/srun <<SH
#!/bin/bash
[ "\$1" != --mpi=list ] || exec echo none
exec $(command -v srun) "\$@"
SH
chmod +x no_pmi/srun
PATH=$work/no_pmi:$PATH salloc --quiet -N2 -n4 "$hortator" launch --nodes 2 --ranks-per-node 2 "$binaries/place" >no_pmi.out 2>&1 || true
expect 'an srun without PMI: mpirun starts the ranks on both nodes' "$(grep -ac '^rank [0-3] of 4 .* of 2 (n[12], mpirun)$' no_pmi.out)" 4 no_pmi.out
cat >show <<'SH'
#!/bin/bash
echo "devices $SLURM_PROCID: $CUDA_VISIBLE_DEVICES"
SH
chmod +x show
salloc --quiet -N2 -n4 --gpus-per-node=2 "$hortator" launch --nodes 2 --ranks-per-node 2 --gpus-per-node 2 ./show >devices.out 2>&1 || true
expect 'every rank sees all devices of its node' "$(grep -ac '^devices [0-3]: 0,1$' devices.out)" 4 devices.out
code=0
HORTATOR_ZERO_STAGE=9 salloc --quiet -N2 -n4 "$hortator" launch "$binaries/stopping" 2 >usage.out 2>&1 || code=$?
expect 'the exit code is that of the failed rank' "$code" 2 usage.out
code=0
salloc --quiet -N2 -n4 "$hortator" launch --mpi none "$binaries/stopping" 2 >single.out 2>&1 || code=$?
expect 'srun would start separate one-rank runs: an error' "$(grep -ac 'each rank would be a world of its own' single.out)" 1 single.out

# A scaling study as steps in one allocation: the model's predictions for sizes that were not fitted are within 15 %.
salloc --quiet -N2 -n4 "$hortator" scale weak --ranks 1,2,4 --repeats 2 --out "$work/steps" -- "$binaries/sleeping" weak 5 300 >steps.out 2>&1 || true
near=0
while read -r error; do
  [ "${error#[+-]}" -gt 15 ] || near=$((near + 1))
done < <(sed -nE 's/^\| [0-9].*\(([+-][0-9]+) %\) \|$/\1/p' "$work/steps/report.md" 2>/dev/null)
expect 'a study in an allocation: predictions for sizes that were not fitted' "$near" 2 steps.out

# The ends of the jobs that have run beside these
for ((i = 0; i < 960; i++)); do [ ! -s "$study/report.md" ] || break; /bin/sleep 0.25; done
# Builds without Cairo draw no scaling.png.
if grep -q '^| 2 | 4 | ' "$study/report.md" && [ -s "$study/scaling.svg" ] &&
  { [ -s "$study/scaling.png" ] || ! "$hortator" plot "$study" -o "$work/cairo.png" 2>/dev/null; }; then
  ok "a study over jobs: $(grep '^| 2 | 4 ' "$study/report.md")"
else
  failed "a study over jobs: $(squeue --noheader --format='%i %T %r'; cat study.out "$study"/*.out "$study"/*/*.log 2>/dev/null)"
fi

wait "$whole" || failed 'the whole run'
wanted=$(grep -a '^end' whole.out)
id=${limit[0]} records=${limit[1]}
if ! await 240; then failed "signalled: $(state) after four minutes"; scancel "$id"; fi
got=$(grep -ah '^end' "$records/$id.out")
if [ -n "$wanted" ] && [ "$got" = "$wanted" ] && grep -aq 'hortator job: requeued' "$records/$id.out" && [ -e "$records/finished" ]; then
  ok "signalled, saved, requeued $(grep -ac 'hortator job: requeued' "$records/$id.out") times, resumed, same result as the run that was never stopped"
else
  failed "signalled: expected '$wanted', got '$got'"
fi

# After the loss of a node the run resumes from its checkpoint on the other node.
submit --name lost --time 00:05:00 --max-restarts 1 --run-dir run -- "$binaries/stopping" 600
if running '^step 5$'; then
  scontrol update nodename=n2 state=down reason=test
  await 120 || failed 'a lost node does not end the run'
  if grep -aq 'restarting from' "$records/$id.out" && grep -aq '^end' "$records/$id.out"; then ok 'a node that is lost'; else failed 'a node that is lost'; fi
  scontrol update nodename=n2 state=resume
else
  failed 'a node that is lost: the run does not start'
fi
scancel "$id" 2>/dev/null
for _ in $(seq 60); do [ "$(sinfo -h -N -t idle -o %N | wc -l)" -eq 2 ] && break; /bin/sleep 0.5; done

if [ "$failures" -gt 0 ]; then
  echo "the controller's last lines:"
  tail -n 60 "$(dirname "$SLURM_CONF")/ctld.log" | sed 's/^/    /'
fi
exit $((failures > 0))
