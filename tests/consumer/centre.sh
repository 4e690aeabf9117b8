#!/usr/bin/env bash
# What a computing centre and its users do: install into a prefix, move it, module load, hortator new, build, hortator test.
#   centre.sh BUILD_DIR
set -euo pipefail
build=$1
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=tests/setup/support.sh
. "$here/../setup/support.sh"
[ -r /usr/share/lmod/lmod/init/bash ] || { echo 'skipped: Lmod is not installed'; exit 77; }
for name in $(compgen -e | grep -E '^(SLURM|PBS|HORTATOR|LMOD|MODULE|CMAKE_PREFIX)' || true); do unset "$name"; done
unset LD_LIBRARY_PATH
set +u
# shellcheck disable=SC1091
. /usr/share/lmod/lmod/init/bash
set -u

cmake --install "$build" --prefix "$scratch/first" >/dev/null
mkdir "$scratch/apps"
mv "$scratch/first" "$scratch/apps/hortator"
module use "$scratch/apps/hortator/share/modulefiles/lmod"
module load hortator
[ "$(command -v hortator)" = "$scratch/apps/hortator/bin/hortator" ] || wrong "the hortator on PATH is $(command -v hortator)"
[[ $LD_LIBRARY_PATH != *torch* ]] || wrong "LD_LIBRARY_PATH is $LD_LIBRARY_PATH"
[[ $(module -t list 2>&1) =~ hortator/[0-9.]+-torch[0-9.]+-(cpu|cuda[0-9.]+)-[a-z]+[0-9.]+ ]] || wrong "the name of the module is $(module -t list 2>&1)"

cd "$scratch"
run hortator doctor --json .
expect_line '"check":"LibTorch"'
run hortator new spiral
expect_code 0
cd spiral
cmake -S . -B build >../log 2>&1 || wrong "$(cat ../log)"
cmake --build build >../log 2>&1 || wrong "$(cat ../log)"
run hortator launch -n 2 build/spiral
expect_code 0
expect_line '% right'
run hortator test -n 2 --here --dir .
expect_code 0
expect_line '^([0-9]+) of \1 checks passed'
module unload hortator
run build/spiral
[ "$code" = 0 ] || wrong 'a program does not start without the module: its RPATH is wrong'
