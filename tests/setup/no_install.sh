#!/usr/bin/env bash
# A machine without any of the tools, where nothing may be installed: says what is missing and stops before building anything.
set -euo pipefail
# shellcheck source=tests/setup/support.sh
. "$(dirname "$0")/support.sh"
copy_tree

bare=$scratch/bin
mkdir "$bare"
for tool in bash awk basename cat cksum cut dirname dpkg env flock grep head id mkdir nproc rm sed sort stat tr uname xargs; do
  if path=$(command -v "$tool"); then ln -s "$path" "$bare/$tool"; fi
done

# parallel HDF5 is looked for in fixed folders too, so it may be found here
expect_refusal() {
  expect_code 1
  expect_line 'missing on this machine'
  for word in 'C\+\+20 compiler' 'CMake 3.25' Ninja 'MPI with' Boost.Program_options Catch2 nlohmann-json yaml-cpp 'python3 with pip'; do
    expect_line "^ +- .*$word"
  done
  expect_no_line 'installing'
  expect_absent "$tree/.deps" "$tree/build"
}

for command in jobs/quickstart.sh tests/run.sh; do
  run env -i PATH="$bare" HORTATOR_NO_INSTALL=1 "$tree/$command"
  expect_refusal
  expect_line 'HORTATOR_NO_INSTALL is set'
done

# neither root nor sudo: the same, and a distribution that we know gets its package names
rm "$bare/id"
printf '#!/bin/sh\necho 1000\n' >"$bare/id"
chmod +x "$bare/id"
run env -i PATH="$bare" "$tree/tests/run.sh"
expect_refusal
if grep -qE '^ID=debian' /etc/os-release; then expect_line 'packages .*: g\+\+ cmake .*openmpi-bin'; fi
