#!/usr/bin/env bash
# check.sh SIGNAL RANK COMMAND...: sends SIGNAL in the middle of a run of 100 steps to RANK (or `launcher`: its parent; `terminal`: the process
# group of the launcher, as Ctrl-C does; `slurm`: each rank of the only job, by scancel). The run ends with code 75 and records this in outcome.json. Started again, it resumes and ends like a run that was
# never stopped: losses, rows, rates, random numbers and parameters are equal bit for bit on each rank. After KILL it resumes from the newest
# timed save. IGNORED: signals that the run ignores from its start. STEPS, ARGUMENTS: of the program. UNSAVED: the run must leave without a
# save, because the disk is slow (SHIM, FAULT_...). FIRST: the signal comes before the first save. The output must have no report of Open MPI.
set -uo pipefail
# shellcheck source=tests/support/ranks_of.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../support/ranks_of.sh"
signal=$1 rank=$2
shift 2
work=$(mktemp -d)
whole=''
trap '[ -z "$whole" ] || kill "$whole" 2>/dev/null; rm -rf "$work"' EXIT
mkdir "$work/whole" "$work/parts"
steps=${STEPS:-100}
read -ra arguments <<<"${ARGUMENTS:-}"
for one in ${IGNORED:-}; do trap '' "$one"; done

fail() {
  echo "failed: $1" >&2
  tail -n 30 "$work"/*/output* >&2
  exit 1
}
# Starts the job. Open MPI 4 over TCP lets a rank die in MPI_Init, rarely and on a busy machine: a message comes before it has registered who takes
# it, and it calls a null pointer. Such a start, before anything of the program was printed, is repeated once. Call it in a process of its own.
start() {
  local output=$1 code
  shift
  [ "$rank" = slurm ] || exec "$@" >"$output" 2>&1
  "$@" >"$output" 2>&1
  code=$?
  if [ $code -ne 139 ] || ! grep -q 'Failing at address: (nil)' "$output" || grep -q '^step' "$output"; then return $code; fi
  "$@" >"$output" 2>&1
}
outcome() { grep -o '"outcome": "[a-z]*"' run/outcome.json; }

# The run without a stop, beside the other one, but for slurm, which must have only one job
cd "$work/whole" || exit 1
start output "$@" "$steps" &
whole=$!
wait_for_whole() {
  wait "$whole" || fail "the run without a stop ended with $?"
  whole=''
  cd "$work/whole" || exit 1
  [ "$(outcome)" = '"outcome": "finished"' ] || fail 'the outcome of the run without a stop is not finished'
  cd "$work/parts" || exit 1
}
[ "$rank" != slurm ] || wait_for_whole

cd "$work/parts" || exit 1
set -m  # the job has a process group of its own, and its SIGINT is not ignored
LD_PRELOAD=${SHIM:-${LD_PRELOAD:-}} start output "$@" "$steps" "${arguments[@]}" &
job=$!
set +m
if [ -n "${FIRST:-}" ]; then begun=3; else begun=50; fi
can_be_reported() {  # a killed rank, with its status
  [ "$signal" != KILL ] || [ "$(basename "$1")" != hortator ] || [ "$(stat -c %s run/status/ranks.jsonl 2>/dev/null || echo 0)" -ge $((2048 * (rank + 1))) ]
}
until grep -q "^step $begun\$" output && { [ -n "${FIRST:-}" ] || [ -e run/checkpoint ]; } && can_be_reported "$1"; do
  kill -0 $job 2>/dev/null || fail 'the run ended before the signal'
  sleep 0.02
done
if [ "$rank" = slurm ]; then
  scancel "--signal=$signal" "$(squeue --noheader --format=%i).0" || fail 'scancel fails'
  target=''
elif [ "$rank" = launcher ]; then
  target=$job
elif [ "$rank" = terminal ]; then
  target=-$job
else
  launcher=$job
  if [ "$(basename "$1")" = hortator ]; then launcher=$(pgrep -P $job); fi
  mapfile -t ranks < <(ranks_of "$launcher" | sort -n)
  target=${ranks[$rank]:-$job}
fi
[ -z "$target" ] || kill "-$signal" -- "$target"
wait $job
code=$?
grep -q '^end' output && fail 'the run did not stop'
if [ "$signal" = KILL ]; then
  if [ $code -eq 0 ] || [ $code -eq 75 ]; then fail "a killed run ended with $code"; fi
  if [ "$(basename "$1")" = hortator ]; then
    grep -qE "^hortator: rank $rank \([^)]+\): Killed by signal 9 \(SIGKILL\), .*; its status .* ago: .*, [0-9]+ updates?\$" output || fail 'the killed rank is not reported'
    grep -q "\"rank\": $rank," run/failure.json || fail "failure.json does not name rank $rank"
  fi
else
  [[ $code =~ ^${CODE:-75}$ ]] || fail "expected exit code ${CODE:-75}, got $code"
  [ "$(outcome)" = '"outcome": "stopped"' ] || fail 'the outcome is not stopped'
  if [ -n "${UNSAVED:-}" ]; then
    if [ -n "${FIRST:-}" ]; then
      grep -q 'too soon for a save: the run stops, and the project has no checkpoint$' output || fail 'the lack of a checkpoint is not reported'
      [ ! -e run/checkpoint ] || fail 'there is a checkpoint'
      wait_for_whole
      exit 0
    fi
    grep -q 'too soon for a save: the run stops, and can resume' output || fail 'the lack of time to save is not reported'
  else
    grep -q 'is saved in .*run/checkpoint and leaves' output || fail 'the place of the checkpoint is not reported'
  fi
fi
if [ "$(basename "$1")" = hortator ] && grep -E '^-{70}|ORTE_ERROR_LOG|aborted' output; then fail 'a stop on purpose looks like a failure'; fi
(start output_2 "$@" "$steps") || fail "the second part ended with $?"
[ "$(outcome)" = '"outcome": "finished"' ] || fail 'the outcome of the second part is not finished'
first=$(grep -m 1 '^step' output_2)
if [ -z "$first" ] || [ "$first" = 'step 0' ]; then fail "the second part did not resume: $first"; fi
[ "$rank" = slurm ] || wait_for_whole
for end in ../whole/end-*; do
  cmp "$end" "$(basename "$end")" || fail "the results differ: $(diff "$end" "$(basename "$end")" | head -n 4)"
done
[ "$(grep -c rows end-0)" -eq "$steps" ] || fail 'the curve does not have one row per step'
