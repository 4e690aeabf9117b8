#!/usr/bin/env bash
# endings.sh HORTATOR BINARIES: jobs on a real OpenPBS of three hosts: arrays and sweeps, and jobs that are deleted, or show their progress. It runs under
# tests/tools/pbs-two-hosts.sh -N 3.
set -uo pipefail
hortator=$1 binaries=$2
# shellcheck source=tests/integration/pbs/support.sh
. "$(dirname "${BASH_SOURCE[0]}")/support.sh"

# Arrays and sweeps: each task has a run of its own.
four() {
  "$hortator" watch "$1" --once >watched 2>&1
  grep -q '^4 runs: 4 finished' watched && [ "$(grep -cE "^$1/[0-3] +finished" watched)" = 4 ] &&
    [ "$("$hortator" watch "$1" --json | grep '"run_id"' | sort -u | wc -l)" = 4 ]
}
submit -n 1 --threads 1 --name tasks --array 0-3 --time 00:05:00 --run-dir runs/array -- "$binaries/sleeping" weak 20 50
array=$id
job_sweep() { alice "$hortator" sweep "$@"; }
grid=$(job_sweep -n 1 --threads 1 --name grid --over steps=20,24 --over time=40,50 --time 00:05:00 --run-dir runs/grid --at-once 2 --submit \
  -- "$binaries/sleeping" weak '{steps}' '{time}' 2>&1 | sed -n 's/^submitted: \([^ ]*\).*/\1/p')
if await 120 "$array" && four runs/array; then ok 'an array of four: four runs'; else failed "an array of four: $(<watched)"; fi
if await 120 "$grid" && four runs/grid && grep -qE '^runs/grid/2 .* 24 updates .*steps=24 time=40' watched; then
  ok 'a sweep of two by two: four runs'
else
  failed "a sweep of two by two: $(<watched)"
fi

# qdel of a running job of a chain, on two hosts and before its first save: it saves at once, and the next job does not start.
submit --nodes 2 --ranks-per-node 2 --name deleted --time 00:05:00 --chain 2 --run-dir run --env FIRST=1 -- "$binaries/stopping" 100000
if seen '^step 5$' "$(output_of "$id")"; then
  alice qdel "$id"
  deleted=$EPOCHREALTIME
  await 60
  echo "from qdel to the end of the job: $(since "$deleted") ms"
  if [ -e run/checkpoint/manifest.json ]; then ok 'a deleted job saves'; else failed 'a deleted job saves nothing'; fi
  await 30 "${ids[1]}"
  has 'a deleted job ends its chain' 'job 1 of the chain was cancelled' "$(output_of "${ids[1]}")"
  expect 'a deleted job: what is left' "$(left_behind)" ''
fi
rm -rf run

# The progress of a run as its job's comment. Ordinary users may not set it: the run tries once, and says so. Operators may.
submit -n 2 --name comment --time 00:05:00 --env HORTATOR_COMMENT_SECONDS=1 --run-dir runs/refused -- "$binaries/sleeping" weak 100 30
ends_with 'a comment that PBS refuses' 0 60
expect 'a comment that PBS refuses: messages' "$(grep -c 'does not let this job set its comment: no more tries' "$(output_of "$id")")" 1
"$PBS_ON" pbs1 qmgr -c 'set server operators += alice@*'
submit -n 2 --name comment --time 00:05:00 --env HORTATOR_COMMENT_SECONDS=1 --run-dir runs/commented -- "$binaries/sleeping" weak 150 30
shown=''
for _ in $(seq 200); do
  shown=$(field comment | grep -E '^step [0-9]+ .*loss') && break
  sleep 0.1
done
expect 'the comment of a job that runs' "${shown%% *}" step
await 60
expect 'the comment of a job that has ended' "$(field comment | grep -oE '^over: step 150 loss .* and finished$' | cut -c1-14)" 'over: step 150'
submit -n 2 --name comment --time 00:05:00 --env HORTATOR_COMMENT_SECONDS=0 --run-dir runs/silent -- "$binaries/sleeping" weak 50 30
await 60
expect 'a comment that is switched off' "$(field comment | grep -c 'step')" 0

exit $((failures > 0))
