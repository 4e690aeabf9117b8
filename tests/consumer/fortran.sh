#!/usr/bin/env bash
# fortran.sh BUILD_DIR FORTRAN C: programs in Fortran and C use an installation that was moved: with CMake and with pkg-config, with all warnings and
# run-time checks, and beside LibTorch, whose folder may hold an old libgfortran.
set -euo pipefail
build=$1 fortran=$2 cc=$3
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=tests/setup/support.sh
. "$here/../setup/support.sh"
cmake --install "$build" --prefix "$scratch/first" >/dev/null
mv "$scratch/first" "$scratch/moved"
package=$scratch/moved
cd "$scratch"
printf 'cpu: true\nmodels: {line: {type: mlp, layers: [3, 2], optimizer: {type: sgd, lr: 0.1}}}\n' >sim.yaml
cp "$here/fortran/solver.f90" "$here/fortran/solver.c" .

expect_well() { # PROGRAM: it runs from scratch
  rm -rf runs
  run "$1"
  expect_code 0
  expect_line 'solver: all is well'
}

export PKG_CONFIG_PATH
PKG_CONFIG_PATH=$(dirname "$(find "$package" -name hortator-fortran.pc)")
read -ra flags < <(pkg-config --cflags hortator-fortran)
read -ra libraries < <(pkg-config --libs hortator-fortran)
run "$fortran" -std=f2018 -Wall -Werror -fcheck=all "${flags[@]}" solver.f90 -o solver "${libraries[@]}"
expect_code 0
expect_well ./solver
run "$fortran" -std=f2018 -g -fsanitize=address "${flags[@]}" solver.f90 -o solver_sanitized "${libraries[@]}"
expect_code 0
ASAN_OPTIONS=detect_leaks=0 expect_well ./solver_sanitized

read -ra flags < <(pkg-config --cflags-only-I hortator)
read -ra libraries < <(pkg-config --libs hortator)
run "$cc" -std=c11 -pedantic -Wall -Wextra -Werror "${flags[@]}" solver.c -o solver_c "${libraries[@]}"
expect_code 0
expect_well ./solver_c
run "$cc" -std=c11 -g -fsanitize=address,undefined "${flags[@]}" solver.c -o solver_c_sanitized "${libraries[@]}"
expect_code 0
ASAN_OPTIONS=detect_leaks=0 expect_well ./solver_c_sanitized

cat >CMakeLists.txt <<'CMAKE'
cmake_minimum_required(VERSION 3.25)
project(solver LANGUAGES C CXX Fortran)
find_package(Hortator REQUIRED COMPONENTS Fortran)
add_executable(solver solver.f90)
target_link_libraries(solver PRIVATE hortator::fortran)
add_executable(beside_torch solver.f90)
target_link_libraries(beside_torch PRIVATE hortator::hortator hortator::fortran)
set_target_properties(beside_torch PROPERTIES Fortran_MODULE_DIRECTORY beside)
CMAKE
run cmake -S . -B build "-DCMAKE_PREFIX_PATH=$package" "-DCMAKE_Fortran_COMPILER=$fortran"
expect_code 0
run cmake --build build
expect_code 0
own=$(readlink -f "$("$fortran" -print-file-name=libgfortran.so)")
for program in solver beside_torch; do
  expect_well "build/$program"
  loaded=$(ldd "build/$program" | sed -n 's/.*libgfortran[^ ]* => \([^ ]*\).*/\1/p')
  [ "$(readlink -f "$loaded")" = "$own" ] || wrong "$program loads '$loaded', not '$own'"
done
