#!/usr/bin/env bash
# sick.sh BINARIES: srun leaves a node out by name that was reported as slow in two attempts, and the spare node takes its place. It runs under
# tests/tools/slurm-two-nodes.sh -N 3. All nodes are this machine: the drill itself reports the node.
set -uo pipefail
# shellcheck source=tests/support/surviving_run.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../support/surviving_run.sh"
binaries=$1 hortator=$(dirname "$1")/bin/hortator
for name in $(compgen -e | grep -E '^(HORTATOR|PBS)_'); do unset "$name"; done
work=$(mktemp -d)
launcher=''
trap '[ -z "$launcher" ] || kill -KILL "$launcher" 2>/dev/null; rm -rf "$work"' EXIT
cd "$work" || exit 1
steps=60
run=runs/surviving

complain() {
  echo "failed: $1" >&2
  tail -n 40 out err resumed.txt $run/restarts.jsonl >&2
  exit 1
}
ranks_of_node() {
  local process
  for process in $(pgrep -x surviving); do
    ! grep -qszx "SLURMD_NODENAME=$1" "/proc/$process/environ" || echo "$process"
  done
}
runs_on() { [ -n "$(ranks_of_node "$1")" ]; }
# attempt NUMBER: the second node is reported as slow, and a rank of the first one is killed
attempt() {
  hold_at $(($1 * 10))
  wait_for_step $(($1 * 10 - 1))
  runs_on n2 || complain 'the second node has no ranks'
  mkdir -p $run/status
  echo "{\"time\":$EPOCHREALTIME,\"host\":\"n2\",\"sign\":\"slow\"}" >>$run/status/hosts.jsonl
  kill -KILL "$(ranks_of_node n1 | head -n 1)"
  wait_for_start $(($1 + 1))
}

hold_at 1
salloc --quiet -N3 --ntasks-per-node=2 "$hortator" launch --nodes 2 --ranks-per-node 2 --max-restarts 9 "$binaries/surviving" $steps >out 2>err &
launcher=$!
attempt 1
attempt 2
grep -q 'the host n2 was slow in 2 attempts and is left out: continuing with 4 ranks on n1,n3' err || complain 'the slow node was not left out'
grep -q '"left_out":\["n2 was slow in 2 attempts"\]' $run/restarts.jsonl || complain 'restarts.jsonl does not name the node'
hold_at 30
wait_until 'the spare node has no ranks' runs_on n3
! runs_on n2 || complain 'the node that was left out has ranks'
rm hold
wait "$launcher" || complain "the run ended with code $?"
launcher=''
grep -q "finished after $steps steps" out || complain 'the run has not finished'
echo 'ok: a slow node was left out'
