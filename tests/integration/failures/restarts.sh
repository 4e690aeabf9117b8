#!/usr/bin/env bash
# restarts.sh HORTATOR RESTARTING: what `hortator launch --max-restarts` starts again and what it does not, and what it writes and prints of it.
set -uo pipefail
hortator=$1 restarting=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
export HORTATOR_MEMORY_FOLDER=$work
failures=0

wrong() {
  echo "failed: $1" >&2
  cat err runs/restarting/restarts.jsonl >&2
  failures=$((failures + 1))
}
# launch CODE STARTS ARGUMENT...: with the exit code CODE after that many starts of the program
launch() {
  local expected=$1 starts=$2 code
  shift 2
  rm -rf runs starts
  timeout -s KILL 120 "$hortator" launch -n 2 "$@" >out 2>err
  code=$?
  [ $code = "$expected" ] || wrong "$*: expected exit code $expected, got $code"
  [ "$(cat starts)" = "$starts" ] || wrong "$*: expected $starts starts, got $(cat starts)"
}
err_has() { grep -qE "$1" err || wrong "expected in the output: $1"; }
row_has() { grep -qE "$2" <<<"$(sed -n "$1p" runs/restarting/restarts.jsonl)" || wrong "expected in row $1 of restarts.jsonl: $2"; }

# killed, it resumes and finishes; kills at the same step are no proof of a bug
launch 0 3 --max-restarts 2 "$restarting" kill@5 kill@5
grep -q 'finished after 12 updates' out || wrong 'the run has not finished'
[ "$(grep -c . runs/restarting/restarts.jsonl)" = 2 ] || wrong 'expected 2 rows'
row_has 1 '"attempt":1,"exit_code":137,.*"decision":"retry","rule":"[a-z-]*","class":"(killed|memory)".*"rank":1.*"is_restarted":true,"delay":0.0'
row_has 2 '"attempt":2,.*"is_restarted":true,"delay":[01].0'
err_has 'exit code 137 on rank 1 \(.*\(rule [a-z-]*\); restarting it from its newest checkpoint \(1 restart left\)'
COLUMNS=400 "$hortator" watch runs/restarting --once >page
grep -qE 'failed +20.*exit code 137, rank 1 \(' page || wrong "watch does not show the attempts: $(cat page)"
grep -q '"failed_attempts": \[' <<<"$("$hortator" watch runs/restarting --json)" || wrong 'watch --json does not show the attempts'
[ "$(sed -n 's/^.*"step"://p' runs/restarting/logs/*.jsonl | sort -n | uniq -d | wc -l)" = 0 ] || wrong 'a step is logged twice'

# a command for each checkpoint, also of the attempt after a kill, and only of whole ones; the next save may be replacing it
# shellcheck disable=SC2016
printf '%s\n' '#!/bin/sh' '[ -f "$1/manifest.json" ] || sleep 0.2' 'if [ -f "$1/manifest.json" ]; then echo whole; else echo partial; fi >>archived' >archive
chmod +x archive
launch 0 2 --max-restarts 1 --on-checkpoint './archive {}' "$restarting" kill@9
[ "$(grep -c whole archived)" -ge 3 ] || wrong "the command ran $(wc -l <archived) times"
! grep -q partial archived || wrong 'the command got a part of a checkpoint'

# the same error at the same step is a bug
launch 1 2 --max-restarts 5 "$restarting" index@5 index@5 index@5
row_has 1 '"decision":"retry".*"step":5,"step_tolerance":0'
row_has 2 '"decision":"stop","rule":"repeated"'
err_has 'is not restarted: the same error came twice, at step 5: that is a bug.* \(rule repeated\)'
"$hortator" why runs/restarting >judged; [ $? = 1 ] || wrong "why does not stop: $(cat judged)"
grep -q "rule repeated" judged || wrong "why names another rule: $(cat judged)"
grep -q 'not restarted' <<<"$(COLUMNS=400 "$hortator" watch runs/restarting --once)" || wrong 'watch does not show the refusal'
launch 139 2 --max-restarts 5 "$restarting" crash@4 crash@4 crash@4
row_has 2 '"rule":"repeated","class":"crash"'
# other steps, or other errors, are not
launch 0 4 --max-restarts 3 "$restarting" index@3 index@6 crash@6
# what no restart cures
launch 2 1 --max-restarts 3 "$restarting" usage@2
err_has 'is not restarted: .*\(rule usage\)'
launch 1 1 --max-restarts 3 "$restarting" index@0
err_has 'is not restarted: .*\(rule error-at-start\)'
# asked to stop while it waits for the network
signalled() {
  wait "$launcher"
  local code=$?
  [ $code = "$2" ] || wrong "SIG$1 between attempts: expected exit code $2, got $code"
  [ "$(cat starts)" = 1 ] || wrong "SIG$1 between attempts: expected 1 start, got $(cat starts)"
}
for signal in USR1=75 TERM=143; do
  rm -rf runs starts err # the next lines must not read what the launch before has printed
  "$hortator" launch -n 2 --max-restarts 3 "$restarting" network@3 >out 2>err &
  launcher=$!
  for _ in $(seq 600); do
    grep -qs 'restart.* left) in 5' err && break
    sleep 0.1
  done
  kill "-${signal%=*}" "$launcher"
  signalled "${signal%=*}" "${signal#*=}"
  err_has 'came between two attempts'
done
# asked to stop between the end of the ranks and the decision: the launcher is held there by a full pipe
rm -rf runs starts
mkfifo full
exec 8<>full
yes '' | head -c 65536 >&8
"$hortator" launch -n 2 --max-restarts 3 "$restarting" network@3 >out 2>full &
launcher=$!
for _ in $(seq 600); do
  [ ! -s starts ] || [ "$(pgrep -P "$launcher" | wc -l)" -gt 1 ] || break # the keeper is left
  sleep 0.1
done
kill -USR1 "$launcher"
cat <&8 >err &
reader=$!
signalled USR1 75
for _ in $(seq 100); do
  grep -q 'came between two attempts' err && break
  sleep 0.1
done
kill $reader
exec 8<&-
err_has 'came between two attempts'
# limits
launch 1 2 --max-restarts 1 "$restarting" odd@3 odd@6
err_has 'is not restarted: it was restarted 1 time already'
launch 1 2 --max-restarts 9 --restarts-per-hour 1 "$restarting" odd@3 odd@6 odd@9
err_has 'is not restarted: it was restarted 1 times? within an hour, the limit of --restarts-per-hour'
launch 1 1 "$restarting" odd@3
row_has 1 '"refused":"no restart was asked for'
exit $((failures > 0))
