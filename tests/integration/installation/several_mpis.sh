#!/usr/bin/env bash
# several_mpis.sh BUILD FAMILY FIRST_MPIEXEC OTHER_MPIEXEC: one build runs under the mpiexec of each MPI. Without a build for FAMILY it is skipped (77).
set -euo pipefail
build=$1 family=$2 first=$3 other=$4
source_tree=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../.." && pwd)
[ -e "$build/lib/hortator/$family" ] || { echo "skipped: configure with -DHORTATOR_MPI_ALSO=$family to test this"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

complain() { printf 'failed: %s\n' "$1" >&2; tail -n 40 -- *.txt >&2; exit 1; }
# runs NAME COMMAND...: writes NAME.txt
runs() {
  local name=$1
  shift
  "$@" >"$name.txt" 2>&1 || complain "$name ended with code $?: $*"
}
has() { grep -q "$2" "$1.txt" || complain "$1 does not show '$2'"; }
gpt=("$build/bin/gpt" --steps 6 --layers 1 --width 32 --context 16 --batch-size 4)

# By hand, the program finds out which MPI has started it.
mkdir first other launched
(cd first && runs gpt "$first" -n 2 "${gpt[@]}" && has gpt 'Open MPI' && has gpt '2 ranks')
(cd other && runs gpt "$other" -n 2 "${gpt[@]}" && has gpt 'MPICH' && has gpt '2 ranks')
(cd launched && runs gpt "$build/bin/hortator" launch -n 2 --launcher "$other" "${gpt[@]}" && has gpt 'MPICH')
for folder in other launched; do
  find first -name loss.csv -exec cmp {} "$folder/$(cd first && find . -name loss.csv)" \; >compared.txt 2>&1
  [ ! -s compared.txt ] || complain "the losses under $folder differ from the first MPI's"
done

# Every back end's collectives, checkpoints over MPI-IO, training.
runs checked_first "$first" -n 2 "$build/bin/hortator" test --here --dir "$work/first"
runs checked_other "$other" -n 2 "$build/bin/hortator" test --here --dir "$work/other"
has checked_first 'Open MPI'
has checked_other 'MPICH'
"$other" -n 2 "$build/bin/hortator" doctor >doctor_other.txt 2>&1 || true # it may find something
has doctor_other 'MPICH'

# What the launch prepares, no rank has to find out.
# shellcheck disable=SC2016
runs prepared "$build/bin/hortator" launch -n 1 --launcher "$other" sh -c 'echo "$LD_LIBRARY_PATH"'
has prepared "^$build/lib/hortator/$family"

# A solver in C with its own MPI gets the library for that one.
mkdir project
cat >project/CMakeLists.txt <<CMAKE
cmake_minimum_required(VERSION 3.22)
project(solver C CXX)
set(MPI_C_COMPILER mpicc.$family)
find_package(MPI REQUIRED COMPONENTS C)
find_package(Hortator REQUIRED)
add_executable(solver "$source_tree/share/examples/simulation/surrogate.c")
target_link_libraries(solver PRIVATE hortator::c MPI::MPI_C m)
CMAKE
runs configured cmake -S project -B solver -DCMAKE_BUILD_TYPE=Release "-DCMAKE_PREFIX_PATH=$build"
runs compiled cmake --build solver
runs solved "$other" -n 2 solver/solver "$source_tree/share/examples/simulation/surrogate.yaml"
has solved 'largest error'
if ldd solver/solver | grep 'libmpi\.so\.40'; then complain 'the solver loads two MPIs'; fi
echo 'one build runs under both'
