#!/usr/bin/env bash
# drill.sh HORTATOR BINARIES: runs under tests/tools/two-hosts.sh -c, with two hosts of two slots each, listed in $HOSTS_FILE.
set -uo pipefail
hortator=$1 binaries=$2
for name in $(compgen -e | grep -E '^(HORTATOR|SLURM|PBS)_'); do unset "$name"; done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
mkdir memory
export HORTATOR_MEMORY_FOLDER=$work/memory
failures=0

# expect NAME CODE LINES PATTERN COMMAND...: the command ends with CODE, and LINES lines of its output match PATTERN.
expect() {
  local name=$1 wanted=$2 lines=$3 pattern=$4 code=0
  shift 4
  timeout 60 "$@" >output 2>&1 || code=$?
  if [ "$code" = "$wanted" ] && [ "$(tr -d '\000' <output | grep -acE "$pattern")" = "$lines" ]; then
    echo "ok: $name"
  else
    echo "failed: $name: code $code"
    sed 's/^/    /' output
    failures=$((failures + 1))
  fi
}

expect 'four ranks on two hosts' 0 4 '^rank ([01] of 4 is [01] of 2 on node 0|[23] of 4 is [01] of 2 on node 1) of 2 \(h[12]-[0-9]+, mpirun\)' \
  "$hortator" launch -n 4 --hostfile "$HOSTS_FILE" "$binaries/place"
expect 'one rank on each host, by option' 0 2 '^rank [01] of 2 is 0 of 1 on node [01] of 2 ' \
  "$hortator" launch --nodes 2 --ranks-per-node 1 --hostfile "$HOSTS_FILE" "$binaries/place"
export HORTATOR_TIMEOUT=71s
# shellcheck disable=SC2016
expect 'environment variables reach both hosts' 0 4 '^h[12]-[0-9]+ 71s 1$' \
  "$hortator" launch -n 4 --debug --hostfile "$HOSTS_FILE" sh -c 'echo "$(hostname) $HORTATOR_TIMEOUT $HORTATOR_DEBUG"'
export HORTATOR_HOSTFILE=$HOSTS_FILE
expect 'a function on two hosts' 0 1 '^sum over 4 is 10$' "$binaries/functions" four
expect 'a function that fails on the other host' 9 1 'rank 3 \(h2-[0-9]+\): the last rank has had enough' "$binaries/functions" four_fail
expect 'the exit code of a function that fails' 9 1 'refused: .*4 ranks ended with exit code 1' "$binaries/functions" four_fail
exit $((failures > 0))
