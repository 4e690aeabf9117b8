#!/usr/bin/env bash
# recovery.sh HORTATOR SURVIVING [RANKS...]: how long a run needs from the death of a rank to its next finished step, by the number of ranks. Prints a table, in
# milliseconds: the first start until the first finished step; from the kill to the next finished step; of that, until the launch has seen the end of all ranks, and
# the second start until the next finished step; and what the recovery adds to a start. Medians of three. On one machine the start itself grows with the ranks, which
# share its cores: a recovery that does not add to it is constant.
set -uo pipefail
hortator=$(realpath "$1") surviving=$(realpath "$2")
shift 2
here=$(dirname "${BASH_SOURCE[0]}")
# shellcheck source=tests/support/ranks_of.sh
. "$here/../../support/ranks_of.sh"
[ $# -gt 0 ] || set -- 2 4 8 16 32
work=$(mktemp -d)
launcher=''
trap '[ -z "$launcher" ] || kill -KILL "$launcher" 2>/dev/null; rm -rf "$work"' EXIT
cd "$work" || exit 1
mkdir memory
export HORTATOR_MEMORY_FOLDER=$work/memory

now() { echo $((${EPOCHREALTIME/[.,]/} / 1000)); }
# Waits until that many steps have ended, and that many starts were made.
wait_for() {
  until [ -f loss.csv ] && [ -f resumed.txt ] && [ "$(wc -l <loss.csv)" -ge "$1" ] && [ "$(wc -l <resumed.txt)" -ge "$2" ]; do
    kill -0 "$launcher" 2>/dev/null || { echo 'the launch has ended early' >&2; cat err >&2; exit 1; }
    sleep 0.005
  done
}
median() { sort -n | sed -n 2p; }
# one RANKS: prints the times of one start and one recovery
one() {
  rm -rf runs steps.txt loss.csv resumed.txt
  local begin first killed found resumed ended
  begin=$(now)
  echo 10 >hold
  "$hortator" launch -n "$1" --max-restarts 9 --memory-checkpoint 5 "$surviving" 60 >out 2>err &
  launcher=$!
  wait_for 1 1
  first=$(($(now) - begin))
  wait_for 10 1
  mapfile -t found < <(ranks_of "$(pgrep -n -P "$launcher")" -f "$surviving")
  killed=$(now)
  kill -KILL "${found[-1]}"
  wait_for 10 2
  echo 11 >hold
  wait_for 11 2
  resumed=$(now)
  ended=$(sed -n 's/^{"time":\([0-9]*\)\.\([0-9]*\).*/\1 \2/p' runs/surviving/restarts.jsonl | { read -r whole part; part=${part}000; echo $((whole * 1000 + 10#${part:0:3})); })
  echo "$first $((resumed - killed)) $((ended - killed)) $((resumed - ended)) $((resumed - killed - first))"
  rm hold
  wait "$launcher" || { cat err >&2; exit 1; }
  launcher=''
}

column() { cut -d' ' -f"$1" measured | median; }
echo '| ranks | start | recovery | until the end is seen | second start | recovery - start |'
echo '|---|---|---|---|---|---|'
for ranks in "$@"; do
  { one "$ranks" && one "$ranks" && one "$ranks"; } >measured || exit 1
  echo "| $ranks | $(column 1) | $(column 2) | $(column 3) | $(column 4) | $(column 5) |"
done
