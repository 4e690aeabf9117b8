#!/usr/bin/env bash
# What only the tests need and cannot be brought is said, and is no reason to stop; and what is brought halfway does not count.
set -euo pipefail
# shellcheck source=tests/setup/support.sh
. "$(dirname "$0")/support.sh"
copy_tree
mkdir "$scratch/bin"
stub() { cat >"$scratch/bin/$1"; chmod +x "$scratch/bin/$1"; }
stub id <<<'echo 0'
stub dpkg </dev/null
stub dpkg-deb </dev/null

# in_set_up COMMAND...: with the set-up's functions, on a machine of that list that lacks what tests need
in_set_up() {
  # shellcheck disable=SC2016  # the inner shell expands them
  run env -u HORTATOR_NO_INSTALL "PATH=$scratch/bin:$PATH" bash -c '
    set -euo pipefail
    . "$1/share/setup/common.sh"
    . "$1/share/setup/packages.sh"
    distribution() { echo debian-12; }
    fetch_package_tools() { :; }
    for capability in "${test_capabilities[@]}" environment_modules package_tools; do eval "have_$capability() { false; }"; done
    "${@:2}"
    echo "went on"' set-up "$tree" "$@"
}

# 1. apt-get that can do nothing: offline, full, or another repository's fault
stub apt-get <<'SH'
#!/bin/sh
echo "E: no network: $*" >&2
exit 100
SH
in_set_up ensure_test_packages
expect_code 0
expect_line 'installing for the tests from debian-12: shellcheck'
expect_line 'E: no network: .*install .*shellcheck'
expect_line 'these could not be installed \(see above\): going on without them'
expect_line 'environment-modules could not be fetched'
expect_line 'not here, so the tests that need it are skipped: shellcheck .*environment_modules'
expect_line '^went on$'
expect_absent "$tree/.deps/environment-modules"

# 2. interrupted while it unpacks: what lies there is no half that passes for the whole, and the next run makes it again
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
expect_no_line 'could not be fetched'
[ -e "$tree/.deps/environment-modules/libexec/modulecmd.tcl" ] || wrong 'not unpacked'
expect_absent "$tree/.deps/environment-modules.part" "$tree/.deps/environment-modules/environment-modules.deb"
