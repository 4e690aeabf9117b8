#!/usr/bin/env bash
# tests/run.sh --changed runs the tests that a change can reach: of the changed room and the rooms above it, not of those below; when unsure, all.
set -euo pipefail
# shellcheck source=tests/setup/support.sh
. "$(dirname "$0")/support.sh"
for program in git python3; do command -v "$program" >/dev/null || { echo "skipped: $program is not installed"; exit 77; }; done

# A project with three rooms, where tools may include models and models core; and what ctest lists for it.
tree=$scratch/tree
mkdir -p "$tree"/{src,tests/unit}/{core,models,tools} "$tree"/{include/hortator/detail,.ci/checks,tests/setup,tests/guide/pages,tests/unit/far,share/setup}
printf 'tools  models\nmodels core\ncore\n\nonly mpi.h ^src/core/\ncircle models models/layers\n' >"$tree/.ci/checks/rooms.txt"
echo '#include <hortator/detail/value.hpp>' >"$tree/include/hortator/model.hpp"
touch "$tree/include/hortator/detail/value.hpp" "$tree/tests/guide/pages/one.md" "$tree/share/setup/setup.sh"
echo '#include <hortator/model.hpp>' >"$tree/src/models/model.cpp"
touch "$tree/src/core/text.cpp" "$tree/src/tools/verb.cpp" "$tree/tests/unit/core/CMakeLists.txt"
echo 'SEEDS guide/pages' >"$tree/tests/unit/core/CMakeLists.txt"
cat >"$scratch/tests.json" <<JSON
{"backtraceGraph": {"files": ["$tree/share/cmake/Tests.cmake", "$tree/tests/unit/core/CMakeLists.txt", "$tree/tests/setup/CMakeLists.txt", "$tree/tests/unit/far/CMakeLists.txt"],
  "nodes": [{"file": 1}, {"file": 0, "parent": 0}, {"file": 2}, {"file": 3}]},
 "tests": [{"name": "batch.core.np2", "backtrace": 0}, {"name": "batch.core_serial.np1"}, {"name": "core_memory.np1", "backtrace": 1}, {"name": "batch.models.np1"},
  {"name": "batch.tools.np1"}, {"name": "setup.options", "backtrace": 2}, {"name": "far.np1", "backtrace": 3}]}
JSON
choose() { run python3 "$source_tree/tests/tools/changed-tests.py" "$tree" "$scratch" --tests "$scratch/tests.json" "$@"; }
result() { tail -n 1 <<<"$output" | sed 's/\\\././g'; }  # without backslashes
# chosen PATTERN FILE...: a change of these files chooses the tests of this expression
chosen() { choose --files "${@:2}"; expect_code 0; [ "$(result)" = "$1" ] || wrong "expected $1 for ${*:2}"; }

chosen '^(batch.tools.np1)$' src/tools/verb.cpp
chosen '^(batch.models.np1|batch.tools.np1|far.np1)$' src/models/model.cpp
chosen '^(batch.core.np2|batch.core_serial.np1|batch.models.np1|batch.tools.np1|core_memory.np1|far.np1)$' src/core/text.cpp
chosen '^(batch.models.np1|batch.tools.np1|far.np1)$' include/hortator/detail/value.hpp
expect_line '--changed: include/hortator/detail/value.hpp \(public header: models\): unit/far unit/models unit/tools '
expect_line '--changed: 3 of 7 tests'
chosen '^(batch.core.np2|batch.core_serial.np1|core_memory.np1)$' tests/unit/core/text_test.cpp
chosen '^(batch.core.np2|batch.core_serial.np1|core_memory.np1)$' tests/guide/pages/one.md
chosen '^(batch.tools.np1|setup.options)$' share/setup/setup.sh src/tools/verb.cpp
for file in CMakeLists.txt share/cmake/FindNCCL.cmake tests/support/catch.hpp src/attic/old.cpp something; do chosen . "$file"; done
choose --files share/doc/changelog.md
expect_code 0
expect_line '0 of 7 tests'

# against the merge base with main, with the working tree
cd "$tree"
choose
expect_line 'no branch main'
[ "$(result)" = . ] || wrong 'without a branch main not all tests are chosen'
git init -q -b main .
commit() { git add -A && git -c user.name=test -c user.email=test@localhost commit -qm "$1"; }
commit first
choose
expect_line 'nothing has changed'
git switch -qc change
echo '// changed' >>src/models/model.cpp
commit second
git switch -q main
echo '// changed' >>src/core/text.cpp
commit third
git switch -q change
touch src/tools/new.cpp
choose
[ "$(result)" = '^(batch.models.np1|batch.tools.np1|far.np1)$' ] || wrong 'not the commits of the branch and the new file'
expect_line 'src/tools/new.cpp'
expect_no_line 'src/core'
