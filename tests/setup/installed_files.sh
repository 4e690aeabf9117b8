#!/usr/bin/env bash
# Everything that the installation copies from the build folder is built by what setup.sh and the quick start build for users, who build no tests.
# If something is not built, `cmake --install` copies nothing.
#   installed_files.sh BUILD
set -euo pipefail
build=$1
[ -e "$build/build.ninja" ] || { echo 'skipped: this build does not use Ninja'; exit 77; }
setup=$(cd "$(dirname "$0")/../../share/setup" && pwd)/setup.sh
read -ra targets <<<"$(sed -n 's/^ *local targets=(\(.*\))$/\1/p' "$setup")"
[ ${#targets[@]} -gt 1 ] || { echo "the targets of $setup were not found" >&2; exit 1; }

ninja=$(command -v ninja || command -v ninja-build)
built=$("$ninja" -C "$build" -t commands "${targets[@]}" | sed -n 's/.* -o \([^ ]*\) .*/\1/p')
installed=$(grep -ohE "\"$build/(bin|lib|libexec)/[^\"]*\"" "$build/cmake_install.cmake" | sed "s|^\"$build/||; s|\"$||" | sort -u)
[ "$(wc -l <<<"$installed")" -gt 3 ] || { echo "no installed files in $build/cmake_install.cmake" >&2; exit 1; }

missing=0
while read -r file; do
  # symbolic links of a library are made with it
  grep -qE "(^|/)${file//./\\.}([.0-9]*)$" <<<"$built" || { echo "not built for users, but installed: $file" >&2; missing=1; }
done <<<"$installed"
[ "$missing" = 0 ] || exit 1

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
sed 's|hortator-doctor|hortator-not-built|' "$build/cmake_install.cmake" >"$scratch/install.cmake"
if output=$(cmake "-DCMAKE_INSTALL_PREFIX=$scratch/prefix" -P "$scratch/install.cmake" 2>&1); then echo 'an incomplete build is installed' >&2; exit 1; fi
[[ $output == *'Nothing was installed'*hortator_verb_doctor* ]] || { echo "unexpected error: $output" >&2; exit 1; }
[ ! -e "$scratch/prefix" ] || { echo 'an incomplete build is installed in part' >&2; exit 1; }
