#!/usr/bin/env bash
# The real reframe runs the check on this machine; it reports a failure for a Hortator whose checks fail.
#   reframe.sh HORTATOR
set -euo pipefail
hortator=$1
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=tests/setup/support.sh
. "$here/../setup/support.sh"
export PATH=$source_tree/.deps/package-tools/bin:$PATH
command -v reframe >/dev/null || { echo 'skipped: reframe is not installed (share/setup/setup.sh --tests --only-deps downloads it)'; exit 77; }
cat >"$scratch/settings.py" <<'PY'
site_configuration = {
    "systems": [{
        "name": "here", "hostnames": [".*"],
        "partitions": [{"name": "all", "scheduler": "local", "launcher": "mpirun", "environs": ["plain"]}],
    }],
    "environments": [{"name": "plain", "cc": "cc", "cxx": "c++", "ftn": ""}],
}
PY
checks() {
  (cd "$scratch" && run reframe -C "$scratch/settings.py" --prefix "$scratch" --report-file "$scratch/report.json" \
    -c "$source_tree/share/packages/reframe/hortator_check.py" -r --performance-report && printf '%s\n%s\n' "$code" "$output")
}
judge() {
  local all
  all=$(PATH=$1:$PATH checks)
  code=$(head -n 1 <<<"$all") output=$(tail -n +2 <<<"$all")
}
judge "$(dirname "$hortator")"
expect_code 0
expect_line 'Ran 1/1 test case.*\(0 failure'
for figure in ranks self mpi node checkpoint checkpoint_by_MPI_IO loader paging training; do expect_line "\\b$figure\\b"; done

mkdir "$scratch/bin"
printf '#!/bin/sh\necho "FAILED  mpi  0.10 s  wrong sums"\necho "7 of 8 checks passed"\nexit 1\n' >"$scratch/bin/hortator"
chmod +x "$scratch/bin/hortator"
judge "$scratch/bin"
[ "$code" != 0 ] || wrong 'a failed check is not reported'
expect_line '\(1 failure'
