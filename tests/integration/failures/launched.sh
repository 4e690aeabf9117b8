#!/usr/bin/env bash
# launched.sh HORTATOR STALLING FAILING MPI: what `hortator launch` prints when a rank is killed, crashes or fails: one line of Hortator, and none
# of Open MPI's reports. Reports that say what nothing else says are passed on, as is all output of the program, with its streams apart.
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=tests/integration/failures/leftovers.sh
. "$here/leftovers.sh"
hortator=$1 stalling=$2 failing=$3
[ "$4" = 'Open MPI' ] || { echo 'skipped: the reports are those of Open MPI'; exit 77; }
mark_processes
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1

complain() {
  echo "failed: $1" >&2
  cat out err >&2
  exit 1
}
# launch CODE COMMAND...: on two ranks; fails unless the exit code is CODE.
launch() {
  local expected=$1 code
  shift
  timeout -s KILL 40 "$hortator" launch -n 2 "$@" >out 2>err
  code=$?
  [ $code -eq "$expected" ] || complain "expected exit code $expected of $*, got $code"
}
expect_one_line() {
  [ "$(grep -c '^hortator: rank' err)" -eq 1 ] || complain 'expected one line of Hortator'
  grep -qE "^hortator: rank $1\$" err || complain "expected: rank $1"
  if grep -E '^-{74}$|ORTE_ERROR_LOG|aborted' err; then complain 'a report of Open MPI is there'; fi
}

launch 137 "$stalling" killed
expect_one_line '1 \([^)]+\): Killed by signal 9 \(SIGKILL\), often the kernel.s out-of-memory killer( \(oom_kill in /[^ ]+: [0-9]+ before the run, [0-9]+ now\))?'
for field in '"rank": 1,' '"host": "[a-z0-9]' '"exit_code": 137,' '"problem": "Killed by signal 9 ' '"time": "20'; do
  grep -q "^  $field" runs/stalling/failure.json || complain "$field is missing in $(cat runs/stalling/failure.json)"
done
launch 139 "$stalling" crashed
expect_one_line '1 \([^)]+\): Killed by signal 11 \(SIGSEGV\)'
grep -q '"exit_code": 139,' runs/stalling/failure.json || complain 'failure.json is not of this run'
launch 1 "$stalling" ended
expect_one_line '1 \([^)]+\): Its process has exited without finalising MPI, .*'
grep -q '"problem": "Its process has exited' runs/stalling/failure.json || complain 'failure.json is not of this run'
touch taken
HORTATOR_RUN_DIR=taken launch 1 "$failing" one
expect_one_line '1 \([^)]+\): the last rank has a problem'
launch 1 "$failing" one
expect_one_line '1 \([^)]+\): the last rank has a problem'
launch 0 "$failing" well
[ ! -s err ] || complain 'a run without a problem writes to standard error'

# programs without Hortator
# shellcheck disable=SC2016
launch 3 sh -c 'printf "\033[31m%s\033[0m 50%% [=>\r" red >&2; echo result; exit 3'
[ "$(grep -c '^result' out)" -ge 1 ] || complain 'standard output is lost'
grep -q "$(printf '\033\[31mred\033\[0m 50%% \[=>\r')" err || complain 'standard error has changed'
grep -q 'Primary job  terminated' err || complain "Open MPI's report is lost although nothing else reports the exit code"
left=$(leftovers)
[ -z "$left" ] || complain "left behind: $left"
