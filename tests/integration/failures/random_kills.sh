#!/usr/bin/env bash
# random_kills.sh N PROGRAM ENDING COMMAND...: starts COMMAND PROGRAM ENDING N times and kills one of its ranks at a random time, which
# may be during start-up. Each job must end soon, with a failure, and leave nothing behind.
set -uo pipefail
here=$(dirname "${BASH_SOURCE[0]}")
# shellcheck source=tests/integration/failures/leftovers.sh
. "$here/leftovers.sh"
# shellcheck source=tests/support/ranks_of.sh
. "$here/../../support/ranks_of.sh"
times=$1 program=$2 ending=$3
shift 3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
mark_processes
seed=${SEED:-$RANDOM}
RANDOM=$seed
echo "seed $seed"

complain() {
  echo "failed at kill $i of $times (SEED=$seed): $1" >&2
  cat output >&2
  exit 1
}

for i in $(seq "$times"); do
  timeout 20 "$@" "$program" "$ending" >output 2>&1 &
  job=$!
  ranks=()
  until [ ${#ranks[@]} -gt 0 ]; do
    kill -0 $job 2>/dev/null || complain 'the job ended before its ranks started'
    mapfile -t ranks < <(ranks_of "$(pgrep -P $job | head -n 1)" -f "$program" 2>/dev/null)
  done
  sleep "0.$(printf %03d $((RANDOM % 800)))"
  kill -KILL "${ranks[$((RANDOM % ${#ranks[@]}))]}" 2>/dev/null
  wait $job
  code=$?
  [ $code -ne 0 ] || complain 'the job succeeded'
  [ $code -ne 124 ] || complain 'the job did not end within 20 s'
  left=$(leftovers)
  [ -z "$left" ] || complain "left behind: $left"
  [ -z "$(find . -name '*.part' -o -name '.stall*' -o -path './scratch/*')" ] || complain "files are left behind: $(find . -type f)"
done
