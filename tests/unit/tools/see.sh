#!/usr/bin/env bash
# hortator watch and plot as users call them: see.sh HORTATOR SLEEPING CAIRO, where CAIRO is 1 in a build with Cairo. Prints each failure and exits with 1.
set -u
hortator=$1
sleeping=$2
cairo=$3
# shellcheck source=tests/unit/tools/support.sh
. "$(dirname "$0")/support.sh"

for verb in watch plot; do
  run $verb --help; code_is 0; out_has 'usage: hortator'
done

# a run that lasts long enough to report its status, on two ranks
run watch absent; code_is 2; err_has "No records of a run in 'absent'"
run watch; code_is 2; err_has 'Expected the folder of a run'
HORTATOR_RUN_DIR=$work/runs/a run launch -n 2 "$sleeping" weak 40 30; code_is 0
run watch runs/a --once; code_is 0
out_has 'runs/a  finished'; out_has '2 ranks on 1 node'; out_has 'updates    40'; out_has 'loss'; out_has 'gradients'; out_has 'checkpoint, '
run watch runs/a --once --colour sometimes; code_is 2; err_has "--colour: expected always, never or auto, got 'sometimes'"
run watch runs/a --once --colour always; [[ $out == *$'\x1b['* ]] || wrong 'no colour'
HORTATOR_RUN_DIR=$work/runs/a run launch -n 2 "$sleeping" weak 40 30; code_is 0
run watch runs/a --once; out_has 'restarts   1: after step 39'
run watch runs/a --json; code_is 0; out_has '"schema_version": 1'; out_has '"state": "finished"'; out_has '"updates": 80'; out_has '"restarts": 1'

# energy, over a made-up sysfs whose counter grows by 1 J every 10 ms
zone=$work/sysfs/sys/class/powercap/intel-rapl:0
mkdir -p "$zone"
echo package-0 >"$zone/name"
echo 262143328850 >"$zone/max_energy_range_uj"
echo 0 >"$zone/energy_uj"
(for i in $(seq 3000); do echo $((i * 1000000)) >"$zone/.new"; mv "$zone/.new" "$zone/energy_uj"; sleep 0.01; done) &
counter=$!
HORTATOR_ENERGY_ROOT=$work/sysfs HORTATOR_RUN_DIR=$work/runs/energy run launch -n 2 "$sleeping" weak 40 50; code_is 0
out=$(<runs/energy/outcome.json); out_has '"source": "powercap"'; out_has '"kwh": '
joules=$(sed -nE 's/^    "joules": ([0-9]+)\..*/\1/p' runs/energy/outcome.json)
# one node, however many ranks: 40 updates of 50 ms
[[ ${joules:-0} -ge 50 && $joules -le 2000 ]] || wrong "the run used $joules J"
run watch runs/energy --once; out_has 'kWh'; out_has '(powercap)'
run watch runs/energy --json; out_has '"source": "powercap"'
out=$(cat runs/energy/logs/*.jsonl); out_has 'node_kWh'
kill "$counter"

# the tasks of an array: a line each, by number, with the arguments of a sweep
mkdir -p runs/s/jobs runs/s/2 runs/s/10/jobs
cp -r runs/a runs/s/1
echo '{"outcome": "finished", "exit_code": 0}' >runs/s/2/outcome.json
echo '{"schema_version":1,"task":2,"arguments":{"lr":"0.1"},"command":["x"]}' >runs/s/2/task.json
COLUMNS=150 run watch runs/s --once; code_is 0; out_has '3 runs: 2 finished, 1 unknown'; out_has 'lr=0.1'
[ "$(grep -oE '^runs/s/[0-9]+' out | xargs)" = 'runs/s/1 runs/s/2 runs/s/10' ] || wrong 'the order of the tasks'
run watch runs/s runs/a --json; code_is 0; [ "$(grep -c '"folder"' out)" = 4 ] || wrong 'four runs were expected'
echo '{"rank": 1, "host": "n1", "problem": "the loss is NaN"}' >runs/s/10/failure.json
COLUMNS=150 run watch runs/s --once; code_is 1; out_has 'the loss is NaN'

# in a terminal of 80 and of 200 columns, with and without colour
command -v script >/dev/null || wrong 'there is no script, which makes terminals (apt-get install bsdutils)'
if command -v script >/dev/null; then
  for columns in 80 200; do
    for colour in '' NO_COLOR=1; do
      timeout 60 env $colour TERM=xterm LC_ALL=C.UTF-8 script -qec "stty cols $columns; '$hortator' watch runs/a" /dev/null </dev/null >out 2>err
      out=$(<out) err=$(<err) call="watch in $columns columns $colour" code=0
      out_has 'finished'
      if [ -n "$colour" ] && grep -q $'\x1b\[3' out; then wrong 'colour was not asked for'; fi
      if [ -z "$colour" ] && ! grep -q $'\x1b\[3' out; then wrong 'there is no colour'; fi
      longest=$(sed $'s/\x1b\[[0-9;?]*[A-Za-z]//g; s/\r//g' out | LC_ALL=C.UTF-8 wc -L)
      [ "$longest" -le "$columns" ] || wrong "a line has $longest columns"
    done
  done
  # a running one is redrawn in place, and leaves the terminal as it was
  HORTATOR_RUN_DIR=$work/runs/b timeout 60 "$hortator" launch -n 1 "$sleeping" weak 80 30 >log 2>&1 &
  job=$!
  for _ in $(seq 100); do [ -s runs/b/status/ranks.jsonl ] && break; sleep 0.1; done
  TERM=xterm timeout 60 script -qec "'$hortator' watch runs/b --interval 0.3" /dev/null </dev/null >out 2>err || wrong 'watch does not see the end'
  wait "$job" || { cat log; wrong 'the run failed'; }
  out=$(<out) err=$(<err) call='watch of a running run' code=0
  out_has 'running'; out_has 'finished'; out_has $'\x1b[?1049h'; out_has $'\x1b[?1049l'; out_has $'\x1b[?25h'

  # the scheduler is queried for the end of the job if the run does not know it, at most once a minute
  mkdir -p fakes runs/e
  # shellcheck disable=SC2016
  printf '#!/bin/sh\necho "squeue $*" >>"%s/questions"\necho 1:00:00\n' "$work" >fakes/squeue
  chmod +x fakes/squeue
  cp -r runs/a/status runs/e
  # it runs, on another machine: an identifier of another boot
  sed -i -E -e 's/"job":""(.*)"over":true(.*) {11}$/"job":"slurm 77"\1"over":false\2  /' -e 's/("process":")./\1x/' runs/e/status/ranks.jsonl
  (sleep 1; echo '{"outcome": "finished"}' >runs/e/outcome.json) &
  PATH=$work/fakes:$PATH TERM=xterm timeout 60 script -qec "'$hortator' watch runs/e --interval 0.1" /dev/null </dev/null >out 2>err
  out=$(<out) err=$(cat questions) call='watch of a run in a job' code=0
  out_has 'ends in 1 h'
  [ "$(cat questions)" = 'squeue --noheader --format=%L --jobs=77' ] || wrong 'the scheduler was to be asked once'
fi

# where no rank has measured energy, Slurm is asked for that of a job that has ended
mkdir -p fakes runs/f
# shellcheck disable=SC2016
printf '#!/bin/sh\necho "sacct $*" >>"%s/energy_questions"\necho "$JOULES"\n' "$work" >fakes/sacct
chmod +x fakes/sacct
cp -r runs/a/status runs/a/outcome.json runs/f
sed -i -E -e 's/"job":""(.*) {10}$/"job":"slurm 77"\1  /' runs/f/status/ranks.jsonl
JOULES=7200000 PATH=$work/fakes:$PATH run watch runs/f --once; code_is 0; out_has 'energy     2 kWh (Slurm, the whole job)'
out=$(<energy_questions); out_has 'sacct --noheader --parsable2 --allocations --format=ConsumedEnergyRaw --jobs=77'
for none in '' 0 18446744073709551614; do
  JOULES=$none PATH=$work/fakes:$PATH run watch runs/f --once; code_is 0
  [[ $out != *energy* ]] || wrong "Slurm does not know the energy: '$none'"
done

# a failed run
mkdir -p runs/c/logs
echo '{"rank": 3, "host": "n1", "problem": "the loss is NaN"}' >runs/c/failure.json
run watch runs/c --once; code_is 1; out_has 'failed'; out_has 'rank 3 (n1): the loss is NaN'

# a run whose ranks were killed is not running, also at once
HORTATOR_RUN_DIR=$work/runs/k timeout 60 "$hortator" launch -n 2 "$sleeping" weak 400 30 >log 2>&1 &
job=$!
for _ in $(seq 200); do [ -s runs/k/status/ranks.jsonl ] && grep -q '"updates":[1-9]' runs/k/status/ranks.jsonl && break; sleep 0.1; done
run watch runs/k --once; code_is 0; out_has 'runs/k  running'
while read -r id; do kill -9 "$id"; done < <(grep -o '"process":"[^"]*"' runs/k/status/ranks.jsonl | cut -d' ' -f3)
wait "$job"
rm -f runs/k/failure.json runs/k/outcome.json
run watch runs/k --once; code_is 1; out_has 'runs/k  killed'; [[ $out != *running* ]] || wrong 'a killed run does not run'

# a million logged steps
awk 'BEGIN { for (i = 0; i < 1000000; ++i) printf "{\"step\":%d,\"time\":%.3f,\"loss\":%.6f}\n", i, 1700000000 + i / 100, 1 / (1 + i / 1000) }' >runs/c/logs/metrics.jsonl
spend watch runs/c --once
[ "$spent" -lt 2000 ] || wrong "a million steps took $spent ms"

# Watching takes less than 0.5 % of the run's processors, were it of a single rank: a look, which is due every 2 s, less than 10 ms.
if command -v script >/dev/null; then
  mkdir runs/d
  cp -r runs/a/status runs/d
  ln -s ../c/logs runs/d/logs
  sed -i "s|$work/runs/a/|$work/runs/d/|" runs/d/status/ranks.jsonl
  (sleep 3; echo '{"outcome": "finished"}' >runs/d/outcome.json) &
  TIMEFORMAT='%U %S'
  { time TERM=xterm timeout 60 script -qec "'$hortator' watch runs/d --interval 0.1" /dev/null </dev/null >out 2>err; } 2>used
  looks=$(grep -ao $'\x1b\[H' out | wc -l)
  used=$(awk -v looks="$looks" '{ if (looks > 0) printf "%.2f", 1000 * ($1 + $2) / looks }' used)
  out=$(<used) err="$looks looks of $used ms" call='watch of a million steps'
  awk -v used="${used:-99}" -v looks="$looks" 'BEGIN { exit !(looks >= 5 && used < 10) }' || wrong 'watching costs too much'
fi

# plot
run plot runs/a; code_is 2; err_has '--output is missing'
run plot runs/a -o a.jpg; code_is 2; err_has "ends in .svg, .png or .pdf, got 'a.jpg'"
run plot runs/a --metric los -o a.svg; code_is 2; err_has "did you mean 'loss'?"
run plot runs/a runs/b -o a.svg; code_is 0
for text in 'steps / s' restart b; do grep -q ">$text</text>" a.svg || wrong "'$text' is missing in the chart"; done
if [ "$cairo" = 1 ]; then
  run plot runs/a -o a.png; code_is 0
  [ "$(head -c 4 a.png | tail -c 3)" = PNG ] || wrong 'no PNG'
  run plot runs/a -o a.pdf; code_is 0
  [ "$(head -c 4 a.pdf)" = %PDF ] || wrong 'no PDF'
else
  run plot runs/a -o a.png; code_is 2; err_has "--output: 'a.png' needs Cairo, which is missing in this build"
fi
run plot runs/a -o absent/a.svg; code_is 1; err_has 'cannot be written'

[ "$failures" = 0 ] || { echo "$failures wrong"; exit 1; }
