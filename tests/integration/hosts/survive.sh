#!/usr/bin/env bash
# survive.sh HORTATOR BINARIES: whole hosts of a launch are killed. It runs under tests/tools/two-hosts.sh -N 3 -c, with hosts of two slots, listed in
# $HOSTS_FILE. First a spare host takes the place of the lost one, then the run continues on the one that is left.
set -uo pipefail
# shellcheck source=tests/support/surviving_run.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../support/surviving_run.sh"
hortator=$1 binaries=$2
for name in $(compgen -e | grep -E '^(HORTATOR|SLURM|PBS)_'); do unset "$name"; done
work=$(mktemp -d)
launcher=''
trap '[ -z "$launcher" ] || kill -KILL "$launcher" 2>/dev/null; rm -rf "$work"' EXIT
cd "$work" || exit 1
memory=$(dirname "$HOSTS_FILE")/memory
mapfile -t hosts < <(cut -d' ' -f1 "$HOSTS_FILE")
steps=60 every=3

complain() {
  echo "failed: $1" >&2
  tail -n 80 out err resumed.txt runs/surviving/restarts.jsonl >&2
  exit 1
}
# kill_host NAME: all its processes, and what is in its memory
kill_host() {
  ip netns pids "$1" | xargs -r kill -KILL
  find "$memory/$1" -mindepth 1 -delete
}
list() { local IFS=,; echo "${hosts[*]/%/:2}"; }

hold_at 13
started=$EPOCHREALTIME
"$hortator" launch --host "$(list)" --nodes 2 --ranks-per-node 2 --max-restarts 9 --memory-checkpoint $every "$binaries/surviving" $steps >out 2>err &
launcher=$!
wait_for_step 12
[ -n "$(find "$memory/${hosts[1]}" -name 'checkpoint_*')" ] || complain 'the second host has no checkpoint in its memory'
[ -n "$(find "$memory/${hosts[2]}" -name 'hortator-*')" ] || complain 'the spare host has no keeper'

killed=$EPOCHREALTIME
kill_host "${hosts[1]}"
wait_for_start 2
hold_at 40
wait_for_step 13
echo "from the death of a host to the next finished step: $((${EPOCHREALTIME/[.,]/} / 1000 - ${killed/[.,]/} / 1000)) ms; the first start took until $((${killed/[.,]/} / 1000 - ${started/[.,]/} / 1000)) ms"
[ "$(sed -n 2p resumed.txt)" = 12 ] || complain "resumed after step $(sed -n 2p resumed.txt), expected 12"
grep -q "the host ${hosts[1]} was lost and is left out: continuing with 4 ranks on ${hosts[0]}:2,${hosts[2]}:2" err || complain 'the spare host did not take the place of the lost one'
wait_for_step 39
kill_host "${hosts[2]}"
wait_for_start 3
rm hold
wait "$launcher" || complain "the run ended with code $?"
launcher=''
grep -q "finished after $steps steps" out || complain 'the run has not finished'
[ "$(sed -n 3p resumed.txt)" = 39 ] || complain "resumed after step $(sed -n 3p resumed.txt), expected 39"
grep -q "continuing with 2 ranks on ${hosts[0]}:2" err || complain 'the run did not continue on the host that was left'
[ "$(cut -d, -f1 loss.csv)" = "$(seq $steps)" ] || complain "a step is missing or there twice: $(cut -d, -f1 loss.csv | uniq -c)"
left=$(find "$memory" -name 'hortator-*')
[ -z "$left" ] || complain "left behind: $left"

# the same losses up to the second death, where the number of ranks has changed
mkdir reference && cd reference || exit 1
"$hortator" launch --host "${hosts[0]}:2,${hosts[2]}:2" --nodes 2 --ranks-per-node 2 "$binaries/surviving" $steps >out 2>err || complain 'the run without deaths has failed'
[ "$(head -n 39 loss.csv)" = "$(head -n 39 ../loss.csv)" ] || complain "the losses differ: $(diff loss.csv ../loss.csv | head -n 6)"
echo 'ok: two hosts were lost'
