#!/usr/bin/env bash
# drill.sh BINARIES: tests on a real Slurm of two nodes. Runs under tests/tools/slurm-two-nodes.sh.
set -uo pipefail
binaries=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
mkdir memory
export HORTATOR_MEMORY_FOLDER=$work/memory
failures=0

# run COMMAND...: up to three attempts, because Open MPI 4.1 may crash within MPI_Init, before any line of Hortator: a peer on the other node
# connects by TCP before the rank is ready (a null pointer in mca_btl_tcp; about one start in twenty with too few cores).
run() {
  local try
  for try in 1 2 3; do
    "$@" >raw 2>&1 && return
    ended=$?
    grep -aq 'Signal: Segmentation fault' raw && ! grep -aqE '^(rank |hortator: )' raw || return "$ended"
    echo "crashed within MPI_Init, attempt $try: $*"
  done
  return "$ended"
}

# expect NAME CODE LINES COMMAND...: the command ends with CODE (ok, bad, or a number), and its sorted lines of Hortator match the patterns
# in LINES.
expect() {
  local name=$1 code=$2 wanted=$3 result=ok
  shift 3
  run "$@" || result=$?
  tr -d '\000' <raw >output  # the mpirun of Open MPI 5 ends its messages with a zero byte
  grep -hE '^(rank |hortator: )' output | LC_ALL=C sort >lines
  local good=1 i=0 line
  if [ "$result" != "$code" ] && [[ $code != bad || $result == ok ]]; then good=0; fi
  local patterns=()
  mapfile -t patterns <<<"$wanted"
  while IFS= read -r line; do
    if [ "$i" -ge ${#patterns[@]} ] || ! [[ $line =~ ^${patterns[$i]}$ ]]; then good=0; fi
    i=$((i + 1))
  done <lines
  if [ "$i" -ne ${#patterns[@]} ]; then good=0; fi
  if [ $good = 1 ]; then
    echo "ok: $name"
  else
    echo "failed: $name: ended $result, expected $code with: $wanted"
    sed 's/^/    /' output
    failures=$((failures + 1))
  fi
}

# Runs the commands of a batch script and prints what they printed.
# shellcheck disable=SC2317
batch() {
  local code=0
  { echo '#!/bin/bash' && printf '%s\n' "$@"; } >job.sh
  sbatch --quiet --wait -N2 -n4 -o job.out job.sh || code=1
  cat job.out
  return "$code"
}

# soon_and_clean NAME PROGRAM COMMAND...: the command, which runs a step of PROGRAM, ends within nine seconds and leaves nothing behind.
soon_and_clean() {
  local name=$1 program=$2 started=${EPOCHREALTIME/[.,]/}
  shift 2
  "$@"
  local took=$(((${EPOCHREALTIME/[.,]/} - started) / 1000))
  local left
  left=$(pgrep -f "$binaries/$program"; find /dev/shm -name '*hortator*'; find "runs/$program" -name '.stall*' 2>/dev/null)
  if [ -n "$left" ] || [ $took -gt 9000 ]; then
    echo "failed: $name: took $took ms, left behind: $left"
    failures=$((failures + 1))
  fi
}

two_by_two='rank 0 of 4 is 0 of 2 on node 0 of 2 \(n1, LAUNCHER\)
rank 1 of 4 is 1 of 2 on node 0 of 2 \(n1, LAUNCHER\)
rank 2 of 4 is 0 of 2 on node 1 of 2 \(n2, LAUNCHER\)
rank 3 of 4 is 1 of 2 on node 1 of 2 \(n2, LAUNCHER\)'
alone='rank 0 of 1 is 0 of 1 on node 0 of 1 \(.*, LAUNCHER\)'
apart='hortator: rank 0 \(n1\): srun started 2 ranks, but .*each rank would be a world of its own.* srun --mpi=pmix .*'

expect 'srun with PMIx: two nodes of two ranks' ok "${two_by_two//LAUNCHER/srun}" srun --mpi=pmix -N2 --ntasks-per-node=2 "$binaries/place"
expect 'srun -n 1' ok "${alone//LAUNCHER/srun}" srun --mpi=pmix -n1 "$binaries/place"
expect 'srun without PMIx: one error with the fix' bad "$apart" srun --mpi=none -w n1 -n2 "$binaries/place"
expect 'the same by default of the site' bad "$apart" env SLURM_MPI_TYPE=none srun -w n1 -n2 "$binaries/place"
expect 'in a batch script: ./prog, and mpirun -n 1 on either node' ok \
  "${alone//.*, LAUNCHER/n1, mpirun}"$'\n'"${alone//.*, LAUNCHER/n1, plain start}"$'\n'"${alone//.*, LAUNCHER/n2, mpirun}" \
  batch "$binaries/place" "mpirun -n 1 $binaries/place" "mpirun -n 1 --host n2 $binaries/place"
expect './prog in an interactive allocation' ok "${alone//LAUNCHER/plain start}" salloc --quiet -N2 -n4 "$binaries/place"
expect 'every rank on two nodes fails: one line' bad 'hortator: rank [0-3] \(n[12]\): every rank has a problem' \
  srun --mpi=pmix -N2 --ntasks-per-node=2 "$binaries/failing" all
soon_and_clean 'one rank fails' failing expect 'one rank fails: one line reports it' 1 'hortator: rank 3 \(n2\): the last rank has a problem' \
  srun --mpi=pmix -N2 --ntasks-per-node=2 "$binaries/failing" one
expect 'all ranks of a node fail: one line' bad 'hortator: rank [23] \(n2\): this node is full' \
  srun --mpi=pmix -N2 --ntasks-per-node=2 "$binaries/failing" agreed_in_node
if ! grep -q '"problem": "this node is full"' runs/failing/failure.json; then
  echo 'failed: the problem is not in failure.json'
  failures=$((failures + 1))
fi

# A run shows in squeue how far it is, and in the job's record how it ended.
HORTATOR_COMMENT_SECONDS=1 srun --mpi=pmix -N2 --ntasks-per-node=1 "$binaries/sleeping" weak 150 30 >output 2>&1 &
step=$!
shown=''
for _ in $(seq 150); do
  shown=$(squeue --noheader -O comment:120 | grep -E '^step [0-9]+ .*loss') && break
  sleep 0.1
done
wait "$step"
ended=$(scontrol --oneliner show job | grep -oE 'Comment=over: step 150 .*' | head -n 1)
if [ -n "$shown" ] && [ -n "$ended" ]; then
  echo "ok: the job's comment: $shown"
else
  echo "failed: the job's comment: while it ran '$shown', at the end '$ended'"
  scontrol show job | sed 's/^/    /'
  sed 's/^/    /' output
  failures=$((failures + 1))
fi

# The checks of an installation, on the nodes. Errors that the doctor finds on this machine do not fail the test.
hortator=$(dirname "$binaries")/bin/hortator
# contains NAME LINES: the latest output has a line for each pattern in LINES
contains() {
  local pattern
  while IFS= read -r pattern; do
    if grep -aqE "$pattern" raw; then continue; fi
    echo "failed: $1: no line matches '$pattern'"
    sed 's/^/    /' raw
    failures=$((failures + 1))
    return
  done <<<"$2"
  echo "ok: $1"
}
run srun --mpi=pmix -N2 --ntasks-per-node=2 "$hortator" doctor .
contains 'doctor on two nodes' '^[a-z]+ +kernel 
^ok +clocks +they agree within a second
^[a-z]+ +CPU binding +2 ranks of this node
^[0-9]+ errors?, [0-9]+ warnings?$'
run srun --mpi=pmix -N2 --ntasks-per-node=2 env HORTATOR_TIMEOUT=60s "$hortator" test --dir . || echo "ended: $?" >>raw
contains 'test on two nodes' '^passed +ranks .*4 ranks, 2 nodes, 2 per node
^passed +node 
^passed +checkpoint by MPI-IO 
^([0-9]+) of \1 checks passed'

if run srun --mpi=pmix -N2 --ntasks-per-node=2 "$binaries/test_weights" '[.two_nodes]'; then
  echo 'ok: weights are loaded on two nodes'
else
  echo 'failed: weights are loaded on two nodes'
  sed 's/^/    /' raw
  failures=$((failures + 1))
fi

# A stalled rank is reported from either node; ranks of the other node publish their state in files.
export HORTATOR_TIMEOUT=2s
# stall ENDING CODE LINE [RECORDED]: the step ends with CODE, which is also in failure.json (or RECORDED, if Slurm reports a killed rank)
stall() {
  soon_and_clean "$1" stalling expect "$1 on two nodes" "$2" "$3" srun --mpi=pmix -N2 --ntasks-per-node=2 "$binaries/stalling" "$1"
  if ! grep -q "\"exit_code\": ${4:-$2}," runs/stalling/failure.json; then
    echo "failed: $1: expected exit_code ${4:-$2} in $(cat runs/stalling/failure.json)"
    failures=$((failures + 1))
  fi
  rm -rf runs/stalling
}
wait='for which ranks 0-2 have waited for [2-3][.][0-9] s'
stall stopped 124 "hortator: rank 3 \(n2\): does not come to all_reduce #2 \(16 B, 4 ranks\), $wait: its process [0-9]* is stopped.*"
stall late 124 "hortator: rank 3 \(n2\): does not come to all_reduce #2 .*$wait: it has been outside of .*dawdle_in_user_code.*"
stall returned 124 "hortator: rank 3 \(n2\): does not come to all_reduce #2 .*$wait: it has left.*"
stall mismatch 124 'hortator: rank 3 \(n2\): is in barrier #[0-9]* \(4 ranks\) while ranks 0-2 are in all_reduce #2 .*'
stall odd_count 2 'hortator: rank 3 \(n2\): The ranks pass tensors of different shapes: rank 3: all_reduce .* \[5\]; ranks 0-2: all_reduce .* \[4\] .*'
HORTATOR_DEBUG=1 HORTATOR_TIMEOUT=60s stall crossed 124 'hortator: rank 3 \(n2\): is in all_reduce #1 .* while ranks 0-2 are in all_reduce #3 .*'
stall left bad 'hortator: rank 3 \(n2\): the program has left by exit\(\).*' 1
# A killed rank is reported by Slurm; newer releases report it together with the ranks that Slurm ends at the same time.
# shellcheck disable=SC2317
killed() {
  local result=ended
  srun --mpi=pmix -N2 --ntasks-per-node=2 "$binaries/stalling" killed >output 2>&1 && result=well
  if [ "$result" = ended ] && grep -Eq 'n2: tasks? (2-)?3: Killed' output; then
    echo 'ok: SIGKILL on two nodes'
  else
    echo "failed: SIGKILL on two nodes: ended $result"
    sed 's/^/    /' output
    failures=$((failures + 1))
  fi
}
soon_and_clean 'SIGKILL on two nodes' stalling killed
exit $((failures > 0))
