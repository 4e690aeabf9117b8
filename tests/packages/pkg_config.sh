#!/usr/bin/env bash
# pkg_config.sh BUILD_DIR CXX: a program is compiled with the flags of hortator.pc alone, against an installation that was moved, and runs.
set -euo pipefail
build=$1 compiler=$2
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=tests/setup/support.sh
. "$here/../setup/support.sh"
command -v pkg-config >/dev/null || { echo 'skipped: pkg-config is not installed'; exit 77; }
cmake --install "$build" --prefix "$scratch/first" >/dev/null
mv "$scratch/first" "$scratch/moved"
folder=("$scratch"/moved/lib*/pkgconfig)
export PKG_CONFIG_PATH=${folder[0]}
run pkg-config --validate hortator
expect_code 0
for name in torch_version mpi hdf5 cuda; do [ -n "$(pkg-config --variable="$name" hortator)" ] || wrong "the variable $name is empty"; done
cat >"$scratch/program.cpp" <<'CPP'
#include <hortator/run.hpp>
#include <hortator/state.hpp>
int main(int argc, char** argv) {
  return hortator::run(argc, argv, [] {
    const hortator::State state;
    state.print("program on ", state.num_processes(), " ranks");
  });
}
CPP
read -ra compile <<<"$(pkg-config --cflags hortator)"
read -ra link <<<"$(pkg-config --libs hortator)"
run "$compiler" -std=c++20 "${compile[@]}" "$scratch/program.cpp" -o "$scratch/program" "${link[@]}"
expect_code 0
unset LD_LIBRARY_PATH
run "$scratch/program"
expect_code 0
expect_line '^program on 1 ranks$'
