#!/usr/bin/env bash
# The Spack package: every directive, spec and option in it exists. Spack itself is not on PyPI, so that its API is stood in for.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=tests/setup/support.sh
. "$here/../setup/support.sh"
command -v python3 >/dev/null || { echo 'skipped: python3 is not here'; exit 77; }
package=$source_tree/share/packages/spack/packages/hortator/package.py
run python3 "$here/spack_package.py" "$package" "$source_tree"
expect_code 0
expect_line 'dependencies'

# the stand-in does refuse what Spack would
broken() { # what is exchanged, by what
  mkdir -p "$scratch/share/packages/spack/packages/hortator"
  touch "$scratch/CMakeLists.txt"
  sed "s|$1|$2|" "$package" >"$scratch/share/packages/spack/packages/hortator/package.py"
  run python3 "$here/spack_package.py" "$scratch/share/packages/spack/packages/hortator/package.py" "$source_tree"
  [ "$code" != 0 ] || wrong "'$2' is taken"
}
broken 'depends_on("mpi")' 'depend_on("mpi")'
broken 'depends_on("mpi")' ''
broken 'when="+images"' 'when="+pictures"'
broken 'HORTATOR_BUILD_TESTS' 'HORTATOR_TESTS'
broken 'branch="main"' 'branhc="main"'
