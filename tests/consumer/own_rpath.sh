#!/usr/bin/env bash
# own_rpath.sh SOURCE LIBTORCH: CMAKE_INSTALL_RPATH of a user, as Spack and EasyBuild set it, comes before the folders of Hortator's libraries.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
LIBTORCH=$2 cmake -S "$1" -B "$work/build" -DHORTATOR_BUILD_TESTS=OFF -DHORTATOR_BUILD_EXAMPLES=OFF -DCMAKE_INSTALL_RPATH=/users/own >"$work/log" 2>&1 ||
  { cat "$work/log"; exit 1; }
for file in libhortator.so hortator-doctor; do
  grep -A9 "/$file" "$work/build"/{cmake_install.cmake,src/cmake_install.cmake} 2>/dev/null | grep -E "NEW_RPATH \"/users/own:.*$2/lib" >/dev/null ||
    { echo "$file: the user's CMAKE_INSTALL_RPATH is lost"; exit 1; }
done
