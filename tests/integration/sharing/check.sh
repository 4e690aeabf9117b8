#!/usr/bin/env bash
# check.sh HORTATOR FAST_CLOCK COMMAND...: two runs in one project folder. The second is refused while the first lives, even if it is stopped, and
# leaves no trace; a run whose predecessor ends within the time for which it waits, was killed, or has finished, is never refused. Tools that only
# read are never refused. FAST_CLOCK: the library of tests/support/fast_clock.cpp, with which the refused run waits a tenth of its time.
set -uo pipefail
hortator=$1 fast_clock=$2
shift 2
work=$(mktemp -d)
first='' second=''
# shellcheck disable=SC2086  # two ids, or none
trap '[ -z "$first$second" ] || kill -KILL $first $second 2>/dev/null; rm -rf "$work"' EXIT
cd "$work" || exit 1

fail() {
  echo "failed: $1" >&2
  tail -n 30 output* >&2
  exit 1
}
begin() { # STEPS OUTPUT
  "${command[@]}" "$1" >"$2" 2>&1 &
  first=$!
  until grep -q '^step [1-9][0-9]$' "$2"; do
    kill -0 $first 2>/dev/null || fail 'the first run ended early'
    sleep 0.05
  done
}
command=("$@")

begin 100000 output_1
[ -s run/run.lock ] || fail 'there is no lock file'
kill -STOP $first
"$hortator" checkpoint list run >output_list 2>&1 || fail 'list is refused'
started=${EPOCHREALTIME/[.,]/}
timeout 60 env LD_PRELOAD="$fast_clock" FAST_CLOCK=10 "$@" 100000 >output_2 2>&1
code=$?
took=$(((${EPOCHREALTIME/[.,]/} - started) / 1000))
[ $code -eq 2 ] || fail "expected exit code 2 of the second run, got $code"
grep -q "Another run uses the folder .*/run: pid $first on $(hostname), since 20.*run.lock" output_2 || fail 'the holder is not named'
grep -q 'waiting for up to 30 s' output_2 || fail 'the wait is not reported'
[ $took -ge 3000 ] || fail "the second run was refused after $took ms"
if [ -e run/failure.json ] || compgen -G 'run/.failure-*' >/dev/null; then fail 'the refused run writes into the folder'; fi
kill -CONT $first
kill -KILL $first
wait $first 2>/dev/null
begin 100 output_3 # at once after a run that was killed
kill -STOP $first  # until the next run waits for it
"$@" 110 >output_4 2>&1 &
second=$!
until grep -q 'waiting for up to' output_4; do
  kill -0 $second 2>/dev/null || fail 'the fourth run did not wait'
  sleep 0.05
done
kill -CONT $first
wait $second || fail 'a run is refused although the run before it ends while it waits'
grep -q '^step 101$' output_4 || fail 'the fourth run does not resume where the third ended'
wait $first || fail 'the third run failed'
first='' second=''
[ ! -e run/run.lock ] || fail 'the lock file is left'

"$@" 110 >output_5 2>&1 || fail 'the run of a finished program fails'
grep -q 'already finished at step 110: no update was left to do' output_5 || fail 'the finished run is not reported'
grep -q '"remark": "already finished at step 110' run/outcome.json || fail 'the remark is missing in outcome.json'
"$@" 120 >output_6 2>&1 || fail 'the continued run fails'
if grep -q 'already finished' output_6 run/outcome.json; then fail 'a run that made updates is called finished'; fi

# a damaged manifest of the only checkpoint is an error, and the checkpoint stays
echo '{' >run/checkpoint/manifest.json
"$@" 130 >output_7 2>&1 && fail 'a damaged checkpoint is ignored'
grep -q 'No checkpoint could be loaded: .*manifest.json' output_7 || fail 'the damage is not reported'
[ -e run/checkpoint/state.h5 ] || fail 'the damaged checkpoint is gone'
[ -s run/failure.json ] || fail 'there is no failure.json'
if compgen -G 'run/.failure-*' >/dev/null; then fail 'a claim of the failure is left'; fi
