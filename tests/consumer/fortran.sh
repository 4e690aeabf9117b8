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
# nothing is loaded before the sanitizer
LD_PRELOAD="" ASAN_OPTIONS=detect_leaks=0 expect_well ./solver_sanitized

read -ra flags < <(pkg-config --cflags hortator-c)
read -ra libraries < <(pkg-config --libs hortator-c)
run "$cc" -std=c11 -pedantic -Wall -Wextra -Werror "${flags[@]}" solver.c -o solver_c "${libraries[@]}"
expect_code 0
expect_well ./solver_c
run "$cc" -std=c11 -g -fsanitize=address,undefined "${flags[@]}" solver.c -o solver_c_sanitized "${libraries[@]}"
expect_code 0
LD_PRELOAD="" ASAN_OPTIONS=detect_leaks=0 expect_well ./solver_c_sanitized

# A program of both languages, and one in C with OpenMP, load their compilers' own libraries, and name nothing of LibTorch's.
own_library() { readlink -f "$("$1" -print-file-name="$2")"; }
expect_own() { # PROGRAM COMPILER LIBRARY
  loaded=$(ldd "$1" | sed -n "s/.*${3%.so}[^ ]* => \\([^ ]*\\).*/\\1/p")
  [ "$(readlink -f "$loaded")" = "$(own_library "$2" "$3")" ] || wrong "$1 loads '$loaded', not $3 of $2"
  if readelf -d "$1" | grep -E '(NEEDED|RUNPATH|RPATH).*(torch|libc10)'; then wrong "$1 names LibTorch"; fi
}
printf 'program both\n  use iso_c_binding\n  interface\n    integer(c_int) function solve() bind(C)\n      import :: c_int\n    end function\n  end interface\n' >both.f90
printf '  real, allocatable :: a(:)\n  allocate (a(3))\n  a = 1\n  if (solve() /= 0 .or. sum(a) /= 3) error stop\nend program\n' >>both.f90
sed 's/int main(void)/int solve(void)/' solver.c >solve.c
run "$cc" -std=c11 "${flags[@]}" -c solve.c -o solve.o
expect_code 0
run "$fortran" both.f90 solve.o -o both "${libraries[@]}"
expect_code 0
expect_well ./both
expect_own ./both "$fortran" libgfortran.so
run "$cc" -std=c11 -fopenmp "${flags[@]}" solver.c -o solver_openmp "${libraries[@]}"
expect_code 0
expect_well ./solver_openmp

cat >CMakeLists.txt <<'CMAKE'
cmake_minimum_required(VERSION 3.25)
project(solver LANGUAGES C CXX Fortran)
find_package(Hortator REQUIRED COMPONENTS Fortran)
add_executable(both both.f90 solve.c)
target_link_libraries(both PRIVATE hortator::c)
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
expect_well build/both
expect_own build/both "$fortran" libgfortran.so
for program in solver beside_torch; do
  expect_well "build/$program"
  loaded=$(ldd "build/$program" | sed -n 's/.*libgfortran[^ ]* => \([^ ]*\).*/\1/p')
  [ "$(readlink -f "$loaded")" = "$own" ] || wrong "$program loads '$loaded', not '$own'"
done
