#!/usr/bin/env bash
# Everything that a computing centre does with the sources, in one command: set-up, build, an installation that is moved, `module load`,
# a new project, `hortator test`. On bare machines:
#   tests/tools/fresh-machine.sh . tests/tools/centre.sh
#   tests/tools/fresh-machine.sh --suite trixie . tests/tools/centre.sh
set -euo pipefail
# shellcheck source=share/setup/setup.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../share/setup/setup.sh"
usage() {
  echo 'usage: tests/tools/centre.sh [option...]    install, move, module load, hortator new, hortator test'
  # shellcheck disable=SC2059
  printf "$shared_usage" 'has no effect here'
}
parse_options "$@"
set_up
install_test_packages lmod
export CMAKE_GENERATOR=Ninja  # for the user's project: the set-up does not install make
exec "$root/tests/consumer/centre.sh" "$build"
