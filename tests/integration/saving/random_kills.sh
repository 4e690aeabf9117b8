#!/usr/bin/env bash
# random_kills.sh TIMES COMMAND...: starts a run that saves repeatedly and kills one of its ranks at a random time, at least
# TIMES times and until one kill was during a save. Each run finds the latest version reported as saved, or the next one,
# complete.
set -uo pipefail
# shellcheck source=tests/support/ranks_of.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../support/ranks_of.sh"
times=$1
shift
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1

fail() {
  echo "failed: $1" >&2
  tail -n 20 output* >&2
  exit 1
}

newest=0
in_the_middle=0
for ((i = 1; i <= times || (in_the_middle == 0 && i <= 20 * times); ++i)); do
  rm -f output
  "$@" 100000 >output 2>&1 &
  job=$!
  until grep -q '^saved' output 2>/dev/null; do
    kill -0 $job 2>/dev/null || fail "run $i ended before the kill"
    sleep 0.01
  done
  sleep "0.$(printf %03d $((RANDOM % 150)))"
  mapfile -t ranks < <(ranks_of $job)
  [ ${#ranks[@]} -gt 0 ] || ranks=("$job")
  kill -KILL "${ranks[RANDOM % ${#ranks[@]}]}"
  wait $job 2>/dev/null
  found=$(sed -n 's/^loaded //p' output)
  [ "$i" -eq 1 ] || [ -n "$found" ] || fail "run $i found no checkpoint"
  [ "$i" -eq 1 ] || [ "$found" -eq "$newest" ] || [ "$found" -eq $((newest + 1)) ] || fail "run $i found version $found; version $newest was saved"
  newest=$(sed -n 's/^saved //p' output | tail -n 1)
  mapfile -t begun < <(compgen -G 'run/checkpoint.new-*')
  [ ${#begun[@]} -le 1 ] || fail "run $i did not remove the incomplete save of the previous run"
  in_the_middle=$((in_the_middle + ${#begun[@]}))
done
echo "$((i - 1)) kills, $in_the_middle of them during a save; version $newest"
[ "$in_the_middle" -gt 0 ] || fail 'no kill was during a save'
