#!/usr/bin/env bash
# well.sh COMMAND...: a job that takes longer than HORTATOR_TIMEOUT, for a good reason, succeeds without a message of Hortator.
# SUSPEND=seconds: all ranks are stopped for this time, as by a batch system that suspends jobs.
set -uo pipefail
# shellcheck source=tests/support/ranks_of.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../support/ranks_of.sh"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1

"$@" >output 2>&1 &
job=$!
if [ -n "${SUSPEND:-}" ]; then
  until grep -q '^failing at' output; do
    kill -0 $job 2>/dev/null || break
    sleep 0.1
  done
  sleep 0.5
  mapfile -t ranks < <(ranks_of $job)
  kill -STOP "${ranks[@]}" && sleep "$SUSPEND" && kill -CONT "${ranks[@]}"
fi
wait $job
code=$?
left=$(find . -type f ! -name output | grep -v '^./runs/[a-z_]*/outcome.json$')
if [ $code -ne 0 ] || grep -q '^hortator: ' output || [ -n "$left" ]; then
  echo "failed: the job ended with code $code, a message or files (${left:-none})" >&2
  cat output >&2
  exit 1
fi
