#!/usr/bin/env bash
# binary_packages.sh BUILD_DIR: CPack's .tar.gz runs where it is unpacked; its .deb has the same files below /usr, and depends on the packages of
# the libraries that Hortator links.
set -euo pipefail
build=$1
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=tests/setup/support.sh
. "$here/../setup/support.sh"
run cpack --config "$build/CPackConfig.cmake" -G TGZ -B "$scratch"
expect_code 0
archive=("$scratch"/hortator-*.tar.gz)
[[ ${archive[0]##*/} =~ ^hortator-[0-9.]+-torch[0-9.]+-(cpu|cuda[0-9.]+)-[a-z]+[0-9.]+-[a-z0-9_]+\.tar\.gz$ ]] || wrong "the archive is called ${archive[0]##*/}"
mkdir "$scratch/unpacked"
tar xzf "${archive[0]}" -C "$scratch/unpacked" --strip-components=1
run "$scratch/unpacked/bin/hortator" --version
expect_code 0
run "$scratch/unpacked/bin/hortator" env
expect_code 0
for file in include/hortator/hortator.hpp 'lib*/libhortator.so' 'lib*/pkgconfig/hortator.pc' 'lib*/cmake/Hortator/HortatorConfig.cmake' share/hortator/examples/README.md \
  share/hortator/sites/perlmutter.yaml share/bash-completion/completions/hortator share/zsh/site-functions/_hortator share/fish/vendor_completions.d/hortator.fish; do
  compgen -G "$scratch/unpacked/$file" >/dev/null || wrong "$file is not in the archive"
done

command -v dpkg-shlibdeps >/dev/null || { echo 'skipped in part: dpkg-shlibdeps is not installed'; exit 0; }
run cpack --config "$build/CPackConfig.cmake" -G DEB -B "$scratch"
expect_code 0
package=("$scratch"/hortator-*.deb)
diff <(dpkg-deb --contents "${package[0]}" | awk '{ print $6 }' | sed -n 's|^\./usr/\(.*[^/]\)$|\1|p' | sort) \
  <(cd "$scratch/unpacked" && find . ! -type d | sed 's|^\./||' | sort) || wrong 'the .deb has other files than the archive'
output=$(dpkg-deb --field "${package[0]}")
expect_line '^Package: hortator$'
expect_line '^Version: [0-9.]+$'
output=$(sed -n 's/^Depends: //p' <<<"$output" | tr , '\n')
# A library that a module or Spack has brought belongs to no package, and is not listed.
for name in libc6 'libstdc\+\+6' libhdf5- libboost-program-options libyaml-cpp; do
  dpkg-query -W "${name//\\/}*" >/dev/null 2>&1 || continue
  expect_line "^ *$name"
done
expect_line '^ *(openmpi-bin|mpich)$'
