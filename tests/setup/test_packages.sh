#!/usr/bin/env bash
# Packages for the tests that cannot be installed are reported and do not stop the set-up; partly downloaded ones do not count.
set -euo pipefail
# shellcheck source=tests/setup/support.sh
. "$(dirname "$0")/support.sh"
copy_tree
mkdir "$scratch/bin"
stub() { cat >"$scratch/bin/$1"; chmod +x "$scratch/bin/$1"; }
stub id <<<'echo 0'
stub dpkg </dev/null
stub dpkg-deb </dev/null

# in_set_up COMMAND...: runs it with the set-up's functions, on a simulated Debian 12 without the packages for the tests
in_set_up() {
  # shellcheck disable=SC2016  # the inner shell expands them
  run env -u HORTATOR_NO_INSTALL "PATH=$scratch/bin:$PATH" bash -c '
    set -euo pipefail
    for file in common background compiler packages; do . "$1/share/setup/$file.sh"; done
    distribution() { echo debian-12; }
    fetch_package_tools() { :; }
    for capability in "${test_capabilities[@]}" environment_modules package_tools; do eval "have_$capability() { false; }"; done
    "${@:2}"
    echo "continued"' set-up "$tree" "$@"
}

# 1. apt-get fails: no network, a full disk or a broken repository
stub apt-get <<'SH'
#!/bin/sh
echo "E: no network: $*" >&2
exit 100
SH
in_set_up eval 'ensure_test_packages; report_test_packages'
expect_code 0
expect_line 'installing for the tests from debian-12: shellcheck'
expect_line 'E: no network: .*install .*shellcheck'
expect_line 'could not install these packages \(see above\): continuing without them'
expect_line 'could not download environment-modules'
expect_line 'not installed, so the tests that need it are skipped: shellcheck .*environment_modules'
expect_line '^continued$'
expect_absent "$tree/.deps/environment-modules"

# 2. interrupted while unpacking: the partial result does not count as complete, and the next run repeats it
stub apt-get <<'SH'
#!/bin/sh
touch environment-modules.deb
SH
stub dpkg-deb <<SH
#!/bin/sh
mkdir -p "\$3/libexec" && touch "\$3/libexec/modulecmd.tcl"
[ ! -e '$scratch/interrupted' ] || kill -KILL \$PPID
SH
touch "$scratch/interrupted"
in_set_up unpack_environment_modules
expect_absent "$tree/.deps/environment-modules"
rm "$scratch/interrupted"
in_set_up unpack_environment_modules
expect_code 0
expect_no_line 'could not download'
[ -e "$tree/.deps/environment-modules/libexec/modulecmd.tcl" ] || wrong 'environment-modules was not unpacked'
expect_absent "$tree/.deps/environment-modules.part" "$tree/.deps/environment-modules/environment-modules.deb"
