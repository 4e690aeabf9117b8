#!/usr/bin/env bash
# check.sh SIGNAL RANK COMMAND...: sends SIGNAL in the middle of a run of 100 steps to RANK (or `launcher`: its parent; `slurm`: each rank of the
# only job, by scancel). The run ends with code 75 and records this in outcome.json. Started again, it resumes and ends like a run that was
# never stopped: losses, rows, rates, random numbers and parameters are equal bit for bit on each rank. After KILL it resumes from the newest
# timed save. IGNORED: signals that the run ignores from its start. STEPS, ARGUMENTS: of the program. UNSAVED: the run must leave without a
# save, because the disk is slow (SHIM, FAULT_...).
set -uo pipefail
# shellcheck source=tests/support/ranks_of.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../support/ranks_of.sh"
signal=$1 rank=$2
shift 2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/whole" "$work/parts"
steps=${STEPS:-100}
read -ra arguments <<<"${ARGUMENTS:-}"
for one in ${IGNORED:-}; do trap '' "$one"; done

fail() {
  echo "failed: $1" >&2
  tail -n 30 "$work"/*/output* >&2
  exit 1
}
outcome() { grep -o '"outcome": "[a-z]*"' run/outcome.json; }

cd "$work/whole" || exit 1
"$@" "$steps" >output 2>&1 || fail "the run without a stop ended with $?"
[ "$(outcome)" = '"outcome": "finished"' ] || fail 'the outcome of the run without a stop is not finished'

cd "$work/parts" || exit 1
LD_PRELOAD=${SHIM:-${LD_PRELOAD:-}} "$@" "$steps" "${arguments[@]}" >output 2>&1 &
job=$!
until grep -q '^step 50$' output && [ -e run/checkpoint ]; do
  kill -0 $job 2>/dev/null || fail 'the run ended before the signal'
  sleep 0.02
done
if [ "$rank" = slurm ]; then
  scancel "--signal=$signal" "$(squeue --noheader --format=%i).0" || fail 'scancel fails'
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
grep -q '^end' output && fail 'the run did not stop'
if [ "$signal" = KILL ]; then
  if [ $code -eq 0 ] || [ $code -eq 75 ]; then fail "a killed run ended with $code"; fi
else
  [ $code -eq 75 ] || fail "expected exit code 75, got $code"
  [ "$(outcome)" = '"outcome": "stopped"' ] || fail 'the outcome is not stopped'
  if [ -n "${UNSAVED:-}" ]; then
    grep -q 'too soon for a save: the run stops' output || fail 'the lack of time to save is not reported'
  else
    grep -q 'is saved in .*run/checkpoint and leaves' output || fail 'the place of the checkpoint is not reported'
  fi
fi
"$@" "$steps" >output_2 2>&1 || fail "the second part ended with $?"
[ "$(outcome)" = '"outcome": "finished"' ] || fail 'the outcome of the second part is not finished'
first=$(grep -m 1 '^step' output_2)
if [ -z "$first" ] || [ "$first" = 'step 0' ]; then fail "the second part did not resume: $first"; fi
for end in ../whole/end-*; do
  cmp "$end" "$(basename "$end")" || fail "the results differ: $(diff "$end" "$(basename "$end")" | head -n 4)"
done
[ "$(grep -c rows end-0)" -eq "$steps" ] || fail 'the curve does not have one row per step'
