#!/usr/bin/env bash
# why.sh HORTATOR FAILING STALLING FAST_CLOCK COMMAND...: what `hortator why` finds in the folders of runs that really failed, each started by
# COMMAND N PROGRAM ENDING (a launcher with its options, without the number of ranks) or by `hortator launch`.
set -uo pipefail
hortator=$1 failing=$2 stalling=$3 fast_clock=$4
shift 4
launcher=("$@")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
failures=0

# judged NAME DECISION CLASS RANK CODE: of the run in the folder runs
judged() {
  "$hortator" why runs/* --json >json 2>err
  local code=$? decision error_class rank
  decision=$(sed -n 's/^      "decision": "*\([a-z]*\)"*,$/\1/p' json)
  error_class=$(sed -n 's/^      "class": "*\([a-z-]*\)"*,$/\1/p' json)
  rank=$(sed -n 's/^      "rank": \([0-9a-z]*\),$/\1/p' json)
  if [[ $decision/$error_class != "$2/$3" || ! $rank =~ ^$4$ || $code != "$5" ]]; then
    echo "failed: $1: got $decision, $error_class, rank $rank, exit code $code instead of $2, $3, rank $4, exit code $5"
    cat json err
    failures=$((failures + 1))
  else
    echo "$1: $decision, $error_class, rank $rank"
  fi
  rm -rf runs
}
# started RANKS PROGRAM ENDING: by mpirun, or alone
started() {
  local ranks=$1
  shift
  if [ "$ranks" = 1 ]; then timeout -s KILL 60 "$@" >out 2>&1; else timeout -s KILL 60 "${launcher[@]}" "$ranks" "$@" >out 2>&1; fi
}
launched() { timeout -s KILL 60 "$hortator" launch -n "$@" >out 2>&1; }

started 4 "$failing" one;            judged 'one rank throws' retry unknown 3 75
started 4 "$failing" all;            judged 'all ranks throw' retry unknown '[0-3]' 75
started 4 "$failing" agreed;         judged 'all ranks throw the error of one' retry unknown 3 75
started 3 "$failing" odd;            judged 'an exception that is no std::exception' retry unknown 2 75
started 2 "$failing" thread;         judged 'a thread throws' retry unknown 1 75
started 1 "$failing" torch;          judged 'a wrong shape at the start' stop program 0 1
started 4 "$failing" torch;          judged 'a wrong shape on one rank' stop program 3 1
started 2 "$failing" located;        judged 'a wrong option' stop usage 1 1
started 2 "$failing" well;           mkdir -p runs/failing
judged 'nothing failed' stop finished null 0
started 1 "$stalling" crashed;       judged 'one rank in all crashes' retry crash 0 75
HORTATOR_TIMEOUT=60s started 3 "$stalling" killed;  judged 'kill -9' retry killed 2 75
HORTATOR_TIMEOUT=60s started 3 "$stalling" crashed; judged 'a segmentation fault' retry crash 2 75
HORTATOR_TIMEOUT=60s started 2 "$stalling" left;    judged 'exit() in the middle' retry program 1 75
HORTATOR_TIMEOUT=2s started 2 "$stalling" stopped;  judged 'SIGSTOP' retry stall 1 75
HORTATOR_TIMEOUT=2s started 4 "$stalling" late;     judged 'a rank that works too long' retry stall 3 75
HORTATOR_TIMEOUT=2s started 3 "$stalling" mismatch; judged 'different collectives' retry stall 2 75
LD_PRELOAD=$fast_clock FAST_CLOCK=3 HORTATOR_TIMEOUT=60s started 2 "$stalling" returned; judged 'a rank that has returned' retry stall 1 75
HORTATOR_DEBUG=1 HORTATOR_TIMEOUT=60s started 2 "$stalling" odd_count; judged 'tensors of different shapes' stop usage 1 1
launched 2 "$stalling" killed;       judged 'kill -9 under launch' retry killed 1 75
launched 2 "$stalling" crashed;      judged 'a segmentation fault under launch' retry crash 1 75
launched 2 "$stalling" ended;        judged '_exit() under launch' retry program 1 75
exit $((failures > 0))
