#!/usr/bin/env bash
# central.sh HORTATOR: settings and site profiles that a centre keeps in the folders of XDG_CONFIG_DIRS rank below those of the user.
set -uo pipefail
hortator=$1
# shellcheck source=tests/unit/tools/support.sh
. "$(dirname "${BASH_SOURCE[0]}")/support.sh"
mkdir -p first/hortator/sites second/hortator/sites .config/hortator
export XDG_CONFIG_DIRS=$work/first:$work/second
echo 'account: centre' >first/hortator/config.yaml
printf 'account: lower\nqueue: central\nsite: machine\n' >second/hortator/config.yaml
printf 'queue: profile\ncpus_per_node: 64\n' >second/hortator/sites/machine.yaml

run config --explain
code_is 0
for line in "account: centre .*# $work/first/hortator/config.yaml" "queue: central .*# $work/second/hortator/config.yaml" \
  "cpus_per_node: 64 .*# $work/second/hortator/sites/machine.yaml"; do
  grep -qE "$line" out || wrong "no line matches '$line'"
done

# the user's file, and a file given by an option, outrank them
echo 'account: mine' >.config/hortator/config.yaml
run config --show
out_has 'account: mine'
out_has 'queue: central'
echo 'account: given' >given.yaml
run config --show --config_file given.yaml
out_has 'account: given'
out_has 'queue: central'

# a profile of the centre replaces one of the installation, and all names are suggested
echo 'cpus_per_node: 7' >first/hortator/sites/alps.yaml
HORTATOR_SITE=alps run config --show
out_has 'cpus_per_node: 7'
HORTATOR_SITE=machin run config --show
code_is 2
err_has "did you mean 'machine'"

# a mistake in a central file is an error that names it
echo 'acount: x' >first/hortator/config.yaml
run config --show
code_is 2
err_has "$work/first/hortator/config.yaml:1: unknown key 'acount'"
[ "$failures" = 0 ]
