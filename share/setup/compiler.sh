# Chooses the C++ compiler of the build. To be sourced, not executed.
# shellcheck shell=bash disable=SC2034,SC2154  # the files of the set-up share their variables

# Prints the newest clang++-N from 16 on that can use the installed C++ library. Fails if there is none.
newest_clang() {
  local clang
  for clang in $(compgen -c clang++- | grep -E '^clang\+\+-(1[6-9]|[2-9][0-9])$' | sort -t - -k 2 -nru); do
    # linked as well: a clang selects the newest GCC, which may be installed without its C++ library
    if "$clang" -std=c++20 -x c++ - -o /dev/null 2>/dev/null <<'CPP'; then echo "$clang"; return; fi
#include <iostream>
#include <source_location>
#include <span>
int main() {
  const int lines[] = {1, 2};
  std::cout << std::span(lines).size() << std::source_location::current().line();
}
CPP
  done
  return 1
}

# Sets `compiler`: what CXX names; otherwise that of the build folder, so that nothing is compiled twice when another one is installed; otherwise the
# newest suitable clang; otherwise CMake's default. Sets `folder_compiler` to that of the build folder, if any.
choose_compiler() {
  local because
  folder_compiler=$(sed -n 's/^CMAKE_CXX_COMPILER:[A-Z]*=//p' "$build/CMakeCache.txt" 2>/dev/null) || folder_compiler=''
  if [ -n "${CXX:-}" ]; then
    compiler=$CXX because='which CXX names'
  elif [ -n "$folder_compiler" ] && [ "$(command -v "${folder_compiler##*/}")" = "$folder_compiler" ]; then
    compiler=$folder_compiler because="as before in ${build#"$root/"} (CXX=g++ selects another; --clean chooses again)"
  elif compiler=$(newest_clang); then
    because='the fastest one here (CXX=g++ selects another)'
  else
    compiler=$(command -v c++ || command -v g++) || compiler=''
    because='the default (CXX=... selects another; clang++-16 or newer compiles faster)'
  fi
  compiler=$(command -v "$compiler" || echo "$compiler")
  log "C++ compiler: $compiler, $because"
}
