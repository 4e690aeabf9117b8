#!/usr/bin/env bash
# On a machine without tools, where nothing may be installed, the commands print what is missing and stop before building.
set -euo pipefail
# shellcheck source=tests/setup/support.sh
. "$(dirname "$0")/support.sh"
copy_tree

bare=$scratch/bin
mkdir "$bare"
for tool in bash awk basename cat cksum cut dirname dpkg env flock grep head id mkdir nproc rm sed sort stat tr uname xargs; do
  if path=$(command -v "$tool"); then ln -s "$path" "$bare/$tool"; fi
done

# without parallel HDF5, which is also searched in fixed folders and may be found
expect_refusal() {
  expect_code 1
  expect_line 'Missing on this machine'
  for name in 'C\+\+20 compiler' 'CMake 3.25' Ninja 'MPI with' Boost.Program_options nlohmann-json yaml-cpp 'python3 with pip'; do
    expect_line "^ +- .*$name"
  done
  expect_no_line 'installing'
  expect_absent "$tree/.deps" "$tree/build"
}

for command in jobs/quickstart.sh tests/run.sh; do
  run env -i PATH="$bare" HORTATOR_NO_INSTALL=1 "$tree/$command"
  expect_refusal
  if [ "$command" = tests/run.sh ]; then expect_line '^ +- .*Catch2'; else expect_no_line 'Catch2'; fi  # only the tests need it
  expect_line 'HORTATOR_NO_INSTALL is set'
done

# without root and sudo: the same, with package names if the distribution is known
rm "$bare/id"
printf '#!/bin/sh\necho 1000\n' >"$bare/id"
chmod +x "$bare/id"
run env -i PATH="$bare" "$tree/tests/run.sh"
expect_refusal
if grep -qE '^ID=debian' /etc/os-release; then expect_line 'Packages .*: g\+\+ cmake .*openmpi-bin'; fi
