#!/usr/bin/env bash
# gpt_options.sh PROGRAM: every usage error is reported, with exit code 2, before any file is created.
set -euo pipefail
# shellcheck source=tests/setup/support.sh
. "$(dirname "${BASH_SOURCE[0]}")/../setup/support.sh"
gpt=$1
cd "$scratch"
echo 'far too short' >short

expect_usage_error() {
  local message=$1
  shift
  run "$gpt" --run-dir wrong "$@"
  expect_code 2
  expect_line "$message"
  expect_absent wrong/checkpoint wrong/loss.csv
}

expect_usage_error 'no-such-option' --no-such-option
expect_usage_error 'steps' --steps many
expect_usage_error 'expected whole numbers from 1' --steps 0
expect_usage_error '--stop-after: expected 0 or more' --stop-after -1
expect_usage_error 'too many positional' notes.txt
expect_usage_error "'nowhere.txt' does not exist" --text nowhere.txt
expect_usage_error 'too short for a context' --text short

run "$gpt" --help
expect_code 0
expect_line '^usage: gpt'
expect_line 'stop-after N'
