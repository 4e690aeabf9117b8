#!/usr/bin/env bash
# The commands' options: --help works, and anything invalid is a usage error before any work starts.
set -euo pipefail
# shellcheck source=tests/setup/support.sh
. "$(dirname "$0")/support.sh"
copy_tree

for command in jobs/quickstart.sh tests/run.sh share/setup/setup.sh; do
  run "$tree/$command" --help
  expect_code 0
  for option in --ranks --gpu --prefix --clean --help; do expect_line "^ +$option "; done

  for arguments in --nonsense nonsense --ranks '--ranks 0' '--ranks -1' '--ranks two' '--ranks=1.5' --prefix '--prefix=' '--clean --nonsense'; do
    # shellcheck disable=SC2086
    run "$tree/$command" $arguments
    expect_code 2
    expect_line '^usage: '
  done
  expect_absent "$tree/.deps" "$tree/build"
done

run "$tree/tests/run.sh" --help
for option in --long --changed; do expect_line "^ +$option "; done
run "$tree/jobs/quickstart.sh" --long
expect_code 2
