#!/usr/bin/env bash
# survive.sh BINARIES: nodes of an allocation die, with their slurmd. It runs under tests/tools/slurm-two-nodes.sh -N 3. First a spare node takes the
# place of the lost one, then the run continues on the one that is left, each time from the memory of the nodes.
set -uo pipefail
# shellcheck source=tests/support/surviving_run.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../support/surviving_run.sh"
binaries=$1 hortator=$(dirname "$1")/bin/hortator
for name in $(compgen -e | grep -E '^(HORTATOR|PBS)_'); do unset "$name"; done
work=$(mktemp -d)
launcher=''
trap '[ -z "$launcher" ] || kill -KILL "$launcher" 2>/dev/null; rm -rf "$work"' EXIT
cd "$work" || exit 1
steps=60 every=3

complain() {
  echo "failed: $1" >&2
  tail -n 40 out err resumed.txt >&2
  exit 1
}
# on NODE COMMAND...: where the node's own /dev/shm is
on() {
  local node=$1
  shift
  nsenter --mount --target "$(pgrep -o -f "slurmd -N $node\$")" "$@"
}
# The processes of a node: slurmd has a mount namespace of its own.
kill_node() {
  local own process
  own=$(readlink "/proc/$(pgrep -o -f "slurmd -N $1\$")/ns/mnt")
  for process in /proc/[0-9]*; do
    [ "$(readlink "$process/ns/mnt" 2>/dev/null)" != "$own" ] || kill -KILL "${process#/proc/}"
  done
  scontrol update "nodename=$1" state=down reason=killed
}

hold_at 13
salloc --quiet --no-kill -N3 --ntasks-per-node=2 "$hortator" launch --nodes 2 --ranks-per-node 2 --max-restarts 9 --memory-checkpoint $every "$binaries/surviving" $steps >out 2>err &
launcher=$!
wait_for_step 12
[ -n "$(on n2 find /dev/shm -name 'checkpoint_*')" ] || complain 'the second node has no checkpoint in its memory'

# The ranks of the other node notice it in their next collective call: they must not be held.
# lose NODE STARTS: kills the node; the run starts for the STARTS-th time, from the memory of the nodes that are left
lose() {
  local killed=$EPOCHREALTIME before resumed
  kill_node "$1" # before steps begin again: the run could finish meanwhile
  hold_at 1000
  wait_for_start "$2"
  hold_at 1
  before=$(sed -n "$(($(wc -l <steps.txt)))p" steps.txt)
  resumed=$(tail -n 1 resumed.txt)
  echo "from the death of $1 to the next start: $((${EPOCHREALTIME/[.,]/} / 1000 - ${killed/[.,]/} / 1000)) ms"
  [ $((before - resumed)) -le $every ] || complain "resumed after step $resumed, although step $before had begun"
  [ "$resumed" -ge 12 ] || complain "resumed after step $resumed, expected 12 or more"
}

lose n2 2
lose n3 3
rm hold
wait "$launcher" || complain "the run ended with code $?"
launcher=''
grep -q "finished after $steps steps" out || complain 'the run has not finished'
grep -q 'continuing on 1 node with 2 ranks' err || complain 'the run did not continue on the node that was left'
[ "$(cut -d, -f1 loss.csv)" = "$(seq $steps)" ] || complain "a step is missing or there twice: $(cut -d, -f1 loss.csv | uniq -c)"
left=$(on n1 find /dev/shm -name 'hortator-*')
[ -z "$left" ] || complain "left behind: $left"
echo 'ok: two nodes were lost'
