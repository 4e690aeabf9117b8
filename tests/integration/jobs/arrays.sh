#!/usr/bin/env bash
# arrays.sh HORTATOR BINARIES: printed scripts, arrays, sweeps and chains on a real Slurm of two nodes. Runs under tests/tools/slurm-two-nodes.sh.
set -uo pipefail
hortator=$1 binaries=$2
for name in $(compgen -e | grep -E '^(HORTATOR|PBS|XDG|HF)_'); do unset "$name"; done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
export HOME=$work COLUMNS=150
failures=0
failed() {
  echo "failed: $1"
  find . -name '*.out' -exec tail -n 30 {} + 2>/dev/null | sed 's/^/    /'
  failures=$((failures + 1))
}
ok() { echo "ok: $1"; }
# ended ID: no task of the job is in the queue. A job that is being requeued may look ended for a moment, so several polls must agree.
ended() {
  local i gone=0
  for ((i = 0; i < $2 * 4; i++)); do
    if [ -n "$(squeue -h -j "$1" -o %T 2>/dev/null)" ]; then gone=0; else gone=$((gone + 1)); fi
    [ "$gone" -lt 6 ] || return 0
    /bin/sleep 0.25
  done
  return 1
}
# seen PATTERN FILE: waits until the file has a line that matches
seen() {
  local i
  for ((i = 0; i < 240; i++)); do
    grep -aqs -- "$1" "$2" && return 0
    /bin/sleep 0.25
  done
  return 1
}
# four FOLDER: `watch` shows four runs, each with a line and an end of its own
four() {
  "$hortator" watch "$1" --once >watched 2>&1
  grep -q '^4 runs: 4 finished' watched && [ "$(grep -cE "^$1/[0-3] +finished" watched)" = 4 ] &&
    [ "$("$hortator" watch "$1" --json | grep '"run_id"' | sort -u | wc -l)" = 4 ]
}

# Without --threads, the CPUs of a rank are its share of a node of 4.
"$hortator" job --nodes 2 --ranks-per-node 2 -- "$binaries/stopping" 1 >cpus.sh 2>/dev/null
if grep -q '^#SBATCH --cpus-per-task=2$' cpus.sh; then ok 'CPUs as sinfo reports them'; else failed "CPUs: $(grep SBATCH cpus.sh)"; fi

# A printed script, submitted by sbatch in an empty folder: it runs, saves before its time limit, is requeued, and resumes.
# It has steps for about 30 s on this machine, and is warned after 20 s: not before its ranks listen.
mkdir project empty
took() {
  local begun=${EPOCHREALTIME/[.,]/}
  mkdir "probe.$1"
  (cd "probe.$1" && srun --mpi=pmix -N2 --ntasks-per-node=2 "$binaries/stopping" "$1" >output 2>&1) || return 1
  echo $((${EPOCHREALTIME/[.,]/} - begun))
}
took 1 >/dev/null || failed 'a first run' # the first start reads the program from disk
less=$(took 100) || failed 'a short run'
more=$(took 300) || failed 'a longer run'
each=$(((more - less) / 200))                     # microseconds; a step of this program sleeps for 10 ms
steps=$((30000000 / (each > 10000 ? each : 10000)))
(cd project && "$hortator" job --nodes 2 --ranks-per-node 2 --name printed --time 00:02:00 --warning-seconds 100 --requeues 20 --run-dir run \
  -- "$binaries/stopping" "$steps" >job.sh 2>budget) || failed 'no script'
id=$(cd empty && sbatch --parsable ../project/job.sh)

# Meanwhile: an array of four, and a sweep of two by two
"$hortator" job -n 1 --threads 1 --name tasks --array 0-3 --time 00:05:00 --run-dir runs/array --submit -- "$binaries/sleeping" weak 40 50 >array.txt 2>&1 ||
  failed "an array: $(<array.txt)"
array=$(sed -n 's/^submitted: \([0-9]*\).*/\1/p' array.txt)
"$hortator" sweep -n 1 --threads 1 --name grid --over steps=40,44 --over time=40,50 --time 00:05:00 --run-dir runs/grid --submit \
  -- "$binaries/sleeping" weak '{steps}' '{time}' >grid.txt 2>&1 || failed "a sweep: $(<grid.txt)"
grid=$(sed -n 's/^submitted: \([0-9]*\).*/\1/p' grid.txt)
ended "$array" 240 || failed "the array does not end: $(squeue)"
if four runs/array; then ok 'an array of four: four runs'; else failed "an array of four: $(<watched)"; fi
ended "$grid" 240 || failed "the sweep does not end: $(squeue)"
if four runs/grid && grep -qE '^runs/grid/2 .* 44 updates .*steps=44 time=40' watched; then ok 'a sweep of two by two: four runs'; else failed "a sweep: $(<watched)"; fi
ended "$id" 400 || failed "the printed script does not end: $(squeue)"
if grep -aq 'hortator job: requeued' "empty/printed-$id.out" && grep -aq '^end' "empty/printed-$id.out" && [ -e project/run/checkpoint/manifest.json ]; then
  ok "a printed script: requeued $(grep -ac 'hortator job: requeued' "empty/printed-$id.out") times, and resumed"
else
  failed 'a printed script'
fi

# scancel of the running link of a chain, or of one that waits: the next ones do not start the program.
chain() {
  rm -rf run
  "$hortator" job --nodes 1 --ranks-per-node 1 --threads 1 --name chain --time 00:05:00 --chain 3 --requeues 0 --run-dir run --submit \
    -- "$binaries/stopping" 100000 >chain.txt 2>&1 || failed "no chain: $(<chain.txt)"
  mapfile -t links < <(sed -n 's/^submitted: \([0-9]*\).*/\1/p' chain.txt)
  records=$(echo run/jobs/*)
  seen '^step 3$' "$records/${links[0]}.out" || failed 'a chain does not start'
}
chain
scancel "${links[0]}"
ended "${links[2]}" 60 || failed "a cancelled chain does not end: $(squeue)"
if grep -aq 'job 1 of the chain was cancelled' "$records/${links[1]}.out" && grep -aq 'job 2 of the chain was cancelled' "$records/${links[2]}.out" &&
  ! grep -aq '^step' "$records/${links[1]}.out"; then
  ok 'scancel of a running link ends the chain'
else
  failed 'scancel of a running link'
fi
chain
scancel "${links[1]}"
ended "${links[2]}" 60 || failed "a link after a cancelled one does not end: $(squeue)"
if grep -aq 'job 2 of the chain was cancelled' "$records/${links[2]}.out" && ! grep -aq '^step' "$records/${links[2]}.out"; then
  ok 'scancel of a waiting link ends the chain'
else
  failed 'scancel of a waiting link'
fi
scancel "${links[0]}"
ended "${links[0]}" 60 || true

exit $((failures > 0))
