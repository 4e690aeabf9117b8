#!/usr/bin/env bash
# kokkos.sh COMPILER SOURCE_DIR BUILD_INCLUDE: compiles and runs kokkos_views.cpp with the Kokkos that is installed. Skipped (77) without one.
# KOKKOS_ROOT is searched first: DIR/include and DIR/lib.
set -euo pipefail
compiler=$1 source=$2 generated=$3
headers=() libraries=()
for root in ${KOKKOS_ROOT:+"$KOKKOS_ROOT"} /usr /usr/local; do
  for folder in include include/kokkos include/trilinos; do
    [ ! -f "$root/$folder/Kokkos_Core.hpp" ] || headers+=("-I$root/$folder")
  done
  while IFS= read -r library; do libraries+=("$library"); done < <(find "$root/lib" -maxdepth 2 -name 'lib*kokkoscore.so' 2>/dev/null)
done
if [ ${#headers[@]} -eq 0 ] || [ ${#libraries[@]} -eq 0 ]; then
  echo 'skipped: Kokkos is not installed (Debian 13: libkokkos-dev, Debian 12: libtrilinos-kokkos-dev)'
  exit 77
fi
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
library=${libraries[0]}
openmp=(-fopenmp)  # for a Kokkos that was built with it
"$compiler" "${openmp[@]}" -x c++ - -o "$scratch/empty" <<<'int main() {}' 2>"$scratch/errors" || openmp=()
"$compiler" -std=c++20 -w "${openmp[@]}" "${headers[0]}" "-I$source/include" "-I$generated" "$source/tests/unit/simulation/kokkos_views.cpp" "$library" \
  "-Wl,-rpath,$(dirname "$library")" -o "$scratch/kokkos_views"
"$scratch/kokkos_views"
