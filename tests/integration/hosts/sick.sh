#!/usr/bin/env bash
# sick.sh HORTATOR BINARIES: a host that is slow in two attempts is left out of the third by name, and one without which the run has too few hosts stays.
# It runs under tests/tools/two-hosts.sh -N 3 -c, with hosts of two slots, listed in $HOSTS_FILE.
set -uo pipefail
# shellcheck source=tests/support/surviving_run.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../support/surviving_run.sh"
hortator=$1 binaries=$2
for name in $(compgen -e | grep -E '^(HORTATOR|SLURM|PBS)_'); do unset "$name"; done
work=$(mktemp -d)
launcher=''
trap '[ -z "$launcher" ] || kill -KILL "$launcher" 2>/dev/null; rm -rf "$work"' EXIT
cd "$work" || exit 1
mapfile -t hosts < <(cut -d' ' -f1 "$HOSTS_FILE")
steps=100 every=3
run=runs/surviving

complain() {
  echo "failed: $1" >&2
  tail -n 80 out err resumed.txt $run/restarts.jsonl $run/status/hosts.jsonl >&2
  exit 1
}
row_has() { grep -qE "$2" <<<"$(sed -n "$1p" $run/restarts.jsonl)" || complain "expected in row $1 of restarts.jsonl: $2"; }
slow_reports() { grep -sc "\"host\":\"$1\",\"sign\":\"slow\"" $run/status/hosts.jsonl; }
was_slow() {
  local seen
  seen=$(slow_reports "$1")
  [ "${seen:-0}" -ge "$2" ]
}
kill_a_rank() {
  local process
  for process in $(ip netns pids "${hosts[0]}"); do
    [ "$(cat "/proc/$process/comm" 2>/dev/null)" = surviving ] && kill -KILL "$process" && return
  done
  complain 'no rank runs on the first host'
}
# attempt NUMBER HOST TIMES: in this attempt, HOST is reported as slow for the TIMES-th time; then a rank of another host is killed
attempt() {
  hold_at $(($1 * 20))
  wait_until "host $2 was not reported as slow" was_slow "$2" "$3"
  wait_for_step $(($1 * 20 - 1))
  kill_a_rank
  wait_for_start $(($1 + 1))
}

echo "${hosts[1]}" >slow
hold_at 1
"$hortator" launch --hostfile "$HOSTS_FILE" --nodes 2 --ranks-per-node 2 --max-restarts 9 --memory-checkpoint $every "$binaries/surviving" $steps >out 2>err &
launcher=$!
attempt 1 "${hosts[1]}" 1
! grep -q 'left out' err || complain 'the host was left out after one attempt'
attempt 2 "${hosts[1]}" 2
grep -q "the host ${hosts[1]} was slow in 2 attempts and is left out: continuing with 4 ranks on ${hosts[0]}:2,${hosts[2]}:2" err || complain 'the slow host was not left out'
row_has 1 '"left_out":\[\],"kept":\[\]'
row_has 2 "\"left_out\":\[\"${hosts[1]} was slow in 2 attempts\"\],\"kept\":\[\]"
grep -q "left out: ${hosts[1]} was slow in 2 attempts" <<<"$(COLUMNS=400 "$hortator" watch $run --once)" || complain 'watch does not show the host that was left out'

echo "${hosts[2]}" >slow # no spare host is left; ranks read the file when they start
kill_a_rank
wait_for_start 4
attempt 4 "${hosts[2]}" 1
! grep -q 'and stays' err || complain 'a host is spoken of after one attempt'
attempt 5 "${hosts[2]}" 2
grep -q "the host ${hosts[2]} was slow in 2 attempts and stays: no spare host can take its place" err || complain 'it is not said why the slow host stays'
row_has 5 "\"left_out\":\[\],\"kept\":\[\"${hosts[2]} was slow in 2 attempts, and no spare host can take its place\"\]"
rm hold slow
wait "$launcher" || complain "the run ended with code $?"
launcher=''
grep -q "finished after $steps steps" out || complain 'the run has not finished'
[ "$(cut -d, -f1 loss.csv)" = "$(seq $steps)" ] || complain "a step is missing or there twice: $(cut -d, -f1 loss.csv | uniq -c)"
echo 'ok: a slow host was left out, and one that was needed stayed'
