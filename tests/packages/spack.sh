#!/usr/bin/env bash
# Every directive, spec and option of the Spack package exists. Spack is not on PyPI, so a stand-in implements its API.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=tests/setup/support.sh
. "$here/../setup/support.sh"
command -v python3 >/dev/null || { echo 'skipped: python3 is not installed'; exit 77; }
package=$source_tree/share/packages/spack/packages/hortator/package.py
run python3 "$here/spack_package.py" "$package" "$source_tree"
expect_code 0
expect_line 'dependencies'

# the stand-in rejects what Spack would reject
broken() { # OLD NEW: the package with this replacement is rejected
  mkdir -p "$scratch/share/packages/spack/packages/hortator"
  touch "$scratch/CMakeLists.txt"
  sed "s|$1|$2|" "$package" >"$scratch/share/packages/spack/packages/hortator/package.py"
  run python3 "$here/spack_package.py" "$scratch/share/packages/spack/packages/hortator/package.py" "$source_tree"
  [ "$code" != 0 ] || wrong "'$2' is accepted"
}
broken 'depends_on("mpi@3.1:")' 'depend_on("mpi@3.1:")'
broken 'depends_on("mpi@3.1:")' ''
broken 'when="+images"' 'when="+photos"'
broken 'HORTATOR_BUILD_TESTS' 'HORTATOR_TESTS'
broken 'branch="main"' 'branhc="main"'
broken 'sanity_check_is_file' 'sanity_check_files'
broken 'py-torch cuda_arch' 'py-torch arch'
broken 'env.set' 'env.put'
