#!/usr/bin/env bash
# check.sh SIGNAL RANK COMMAND...: a run of 100 steps whose RANK (or `launcher`: its parent; `slurm`: each rank of the only job, by
# scancel) gets SIGNAL in the middle ends with code 75, says so in outcome.json, and when it is started again ends as the run that was
# never stopped: losses, rows, rates, random numbers and parameters bit for bit on each rank. With KILL it goes on from the newest save by the clock. IGNORED names signals to which the
# run is started deaf; STEPS and WORDS are the program's; with UNSAVED it must leave without a save, on a disk that is slow as
# FAULT_... say (SHIM).
set -uo pipefail
# shellcheck source=tests/support/ranks_of.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../support/ranks_of.sh"
signal=$1 rank=$2
shift 2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/whole" "$work/parts"
steps=${STEPS:-100}
read -ra words <<<"${WORDS:-}"
for one in ${IGNORED:-}; do trap '' "$one"; done

fail() {
  echo "failed: $1" >&2
  tail -n 30 "$work"/*/output* >&2
  exit 1
}
outcome() { grep -o '"outcome": "[a-z]*"' run/outcome.json; }

cd "$work/whole" || exit 1
"$@" "$steps" >output 2>&1 || fail "the whole run ended with $?"
[ "$(outcome)" = '"outcome": "finished"' ] || fail 'the whole run has no mark of its end'

cd "$work/parts" || exit 1
LD_PRELOAD=${SHIM:-${LD_PRELOAD:-}} "$@" "$steps" "${words[@]}" >output 2>&1 &
job=$!
until grep -q '^step 50$' output && [ -e run/checkpoint ]; do
  kill -0 $job 2>/dev/null || fail 'it ended before it was told to'
  sleep 0.02
done
if [ "$rank" = slurm ]; then
  scancel "--signal=$signal" "$(squeue --noheader --format=%i).0" || fail 'scancel does not work'
  target=''
elif [ "$rank" = launcher ]; then
  target=$job
else
  mapfile -t ranks < <(ranks_of $job | sort -n)
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
  if [ -n "${UNSAVED:-}" ]; then
    grep -q 'which is no time to save: the run leaves' output || fail 'it does not say that there was no time to save'
  else
    grep -q 'is saved in .*run/checkpoint and leaves' output || fail 'it does not say where it was saved'
  fi
fi
"$@" "$steps" >output_2 2>&1 || fail "the second part ended with $?"
[ "$(outcome)" = '"outcome": "finished"' ] || fail 'the second part has no mark of its end'
first=$(grep -m 1 '^step' output_2)
if [ -z "$first" ] || [ "$first" = 'step 0' ]; then fail "the second part did not go on: $first"; fi
for end in ../whole/end-*; do
  cmp "$end" "$(basename "$end")" || fail "the two do not end alike: $(diff "$end" "$(basename "$end")" | head -n 4)"
done
[ "$(grep -c rows end-0)" -eq "$steps" ] || fail 'the curve has another number of steps'
