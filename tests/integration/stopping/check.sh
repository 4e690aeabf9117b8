#!/usr/bin/env bash
# check.sh SIGNAL RANK COMMAND...: a run of 50 steps whose RANK (or `launcher`: its parent; `slurm`: each rank of the only
# job, by scancel) gets SIGNAL ends with code 75,
# says so in outcome.json, and when it is started again ends as the run that was never stopped, bit for bit. With KILL it goes on from
# the newest save by the clock.
set -uo pipefail
signal=$1 rank=$2
shift 2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/whole" "$work/parts"

fail() {
  echo "failed: $1" >&2
  tail -n 30 "$work"/*/output* >&2
  exit 1
}
outcome() { grep -o '"outcome": "[a-z]*"' run/outcome.json; }

cd "$work/whole" || exit 1
"$@" 50 >output 2>&1 || fail "the whole run ended with $?"
[ "$(outcome)" = '"outcome": "finished"' ] || fail 'the whole run has no mark of its end'

cd "$work/parts" || exit 1
"$@" 50 >output 2>&1 &
job=$!
until grep -q '^step 12$' output && [ -e run/checkpoint ]; do
  kill -0 $job 2>/dev/null || fail 'it ended before it was told to'
  sleep 0.02
done
if [ "$rank" = slurm ]; then
  scancel "--signal=$signal" "$(squeue --noheader --format=%i).0" || fail 'scancel does not work'
  target=''
elif [ "$rank" = launcher ]; then
  target=$job
else
  mapfile -t ranks < <(pgrep -P $job | sort -n)
  target=${ranks[$rank]:-$job}
fi
[ -z "$target" ] || kill "-$signal" "$target"
wait $job
code=$?
grep -q '^end' output && fail 'it did not stop'
if [ "$signal" = KILL ]; then
  if [ $code -eq 0 ] || [ $code -eq 75 ]; then fail "it was killed, and ended with $code"; fi
else
  [ $code -eq 75 ] || fail "it ended with $code in place of 75"
  [ "$(outcome)" = '"outcome": "stopped"' ] || fail 'nothing says that it was stopped'
  grep -q 'is saved in .*run/checkpoint and leaves' output || fail 'it does not say where it was saved'
fi
"$@" 50 >output_2 2>&1 || fail "the second part ended with $?"
[ "$(outcome)" = '"outcome": "finished"' ] || fail 'the second part has no mark of its end'
[ "$(grep '^end' ../whole/output)" = "$(grep '^end' output_2)" ] || fail 'the two do not end alike'
