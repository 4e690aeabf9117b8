#!/usr/bin/env bash
# source_archive.sh BUILD_DIR: CPack's archive of the sources has exactly the files that git tracks, under the name that recipes expect.
set -euo pipefail
build=$1
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=tests/setup/support.sh
. "$here/../setup/support.sh"
tracked=$(cd "$source_tree" && git ls-files --cached --others --exclude-standard 2>/dev/null) || true
[ -n "$tracked" ] || { echo 'skipped: the sources are not a git checkout'; exit 77; }
run cpack --config "$build/CPackSourceConfig.cmake" -B "$scratch"
expect_code 0
version=$(sed -n 's/^project(Hortator VERSION \([0-9.]*\).*/\1/p' "$source_tree/CMakeLists.txt")
output=$(tar tzf "$scratch/hortator-$version.tar.gz" | sed -n "s|^hortator-$version/\\(.*[^/]\\)\$|\\1|p" | LC_ALL=C sort)
diff <(cd "$source_tree" && LC_ALL=C sort <<<"$tracked" | while read -r file; do [ ! -e "$file" ] || echo "$file"; done) - <<<"$output" ||
  wrong 'the archive has other files than git'
