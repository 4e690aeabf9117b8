# Checks what the build needs from the system and installs what is missing, if permitted. It looks for capabilities, not for packages, so
# that environment modules count as well. To be sourced, not executed.
# shellcheck shell=bash disable=SC2034,SC2154  # the files of the set-up share their variables

lists=$root/share/setup/packages
test_capabilities=(shellcheck clang_format clang_tidy slurm hdf5_tools h5py python aarch64 doxygen compression images unicode cairo lmod hosts fuzz mold mpich hdf5_mpich)

# Prints the folders in which a cluster's modules may have installed a library.
prefixes() {
  local IFS=: dir
  # shellcheck disable=SC2086
  for dir in ${BOOST_ROOT:-} ${HDF5_ROOT:-} ${HDF5_DIR:-} ${Catch2_ROOT:-} ${nlohmann_json_ROOT:-} ${CMAKE_PREFIX_PATH:-}; do
    [ ! -d "$dir" ] || printf '%s\n' "$dir"
  done
}

version_at_least() { [ "$(printf '%s\n' "$1" "$2" | sort -V | head -n 1)" = "$1" ]; }

# Sets `headers` to the capabilities that are headers, all found with one run of the preprocessor.
probe_headers() {
  local flags=() dir
  while read -r dir; do flags+=("-I$dir/include" "-L$dir/lib" "-L$dir/lib64"); done < <(prefixes)
  headers=$("${CXX:-g++}" -std=c++20 -E -P "${flags[@]}" -x c++ - 2>/dev/null <<'CPP'
#include <version>
#if defined(__cpp_lib_source_location) && defined(__cpp_lib_span) && defined(__cpp_lib_ranges)
compiler
#endif
#if __has_include(<boost/program_options.hpp>)
boost
#endif
#if __has_include(<catch2/catch_all.hpp>) || __has_include(<catch2/catch.hpp>)
catch2
#endif
#if __has_include(<nlohmann/json.hpp>)
json
#endif
#if __has_include(<yaml-cpp/yaml.h>)
yaml
#endif
#if __has_include(<zlib.h>) && __has_include(<zstd.h>)
compression
#endif
#if __has_include(<png.h>) && __has_include(<jpeglib.h>)
images
#endif
#if __has_include(<unicode/uregex.h>)
unicode
#endif
#if __has_include(<cairo/cairo.h>) || __has_include(<cairo.h>)
cairo
#endif
CPP
  ) || headers=''
  # Boost's headers are one package, each of its libraries another
  if [[ $headers == *boost* ]] && ! echo 'int main() {}' |
    "${CXX:-g++}" -x c++ - -o /dev/null "${flags[@]}" -lboost_program_options 2>/dev/null; then
    headers=${headers/boost/}
  fi
}
have_header() { grep -qx "$1" <<<"$headers"; }

have_compiler() { have_header compiler; }
have_boost() { have_header boost; }
have_catch2() { have_header catch2; }
have_json() { have_header json; }
have_yaml() { have_header yaml; }
have_compression() { have_header compression; }
have_images() { have_header images; }
have_unicode() { have_header unicode; }
have_cairo() { have_header cairo && command -v pkg-config >/dev/null; }
have_cmake() { command -v cmake >/dev/null && version_at_least 3.25 "$(cmake --version | awk 'NR == 1 { print $3 }')"; }
have_ninja() { command -v ninja >/dev/null || command -v ninja-build >/dev/null; }
have_mpi() {
  command -v mpicc >/dev/null && { command -v mpirun || command -v mpiexec || command -v srun; } >/dev/null
}
have_mpich() { command -v mpicc.mpich >/dev/null && command -v mpiexec.mpich >/dev/null; }
have_hdf5_mpich() { command -v h5pcc.mpich >/dev/null; }
have_hdf5() {
  local dir h5pcc
  h5pcc=$(command -v h5pcc) || h5pcc=''
  for dir in $(prefixes | sed 's|$|/include|') ${h5pcc:+"${h5pcc%/bin/*}/include"} \
    /usr/include/hdf5/openmpi /usr/include/hdf5/mpich /usr/include/openmpi-x86_64 /usr/include/mpich-x86_64; do
    ! grep -qsE 'define H5_HAVE_PARALLEL 1' "$dir"/H5pubconf*.h || return 0
  done
  return 1
}
nvcc() { command nvcc "$@" 2>/dev/null || "${CUDA_HOME:-/usr/local/cuda}/bin/nvcc" "$@" 2>/dev/null; }
toolkit_version() { nvcc --version | sed -n 's/.*release \([0-9.]*\),.*/\1/p'; }  # empty without a toolkit
have_cuda() { [ -n "$(toolkit_version)" ]; }
have_download() { command -v python3 >/dev/null && python3 -m pip --version >/dev/null 2>&1; }
have_extra() { command -v ccache && command -v git && command -v make; } >/dev/null  # make: CMake's default for projects of the user's
have_clang() { newest_clang >/dev/null; }
have_shellcheck() { command -v shellcheck >/dev/null; }
have_clang_format() { command -v clang-format >/dev/null; }
have_mold() { command -v mold >/dev/null; }  # halves the time to link the test programs
have_hosts() { command -v ip >/dev/null; }  # to simulate several hosts on one machine
have_lmod() { [ -r /usr/share/lmod/lmod/init/bash ]; }
have_environment_modules() { [ -n "$(find "$deps/environment-modules" /usr/lib /usr/share/Modules -name modulecmd.tcl -print -quit 2>/dev/null)" ]; }
have_slurm() { command -v slurmctld >/dev/null && command -v munged >/dev/null && ls /usr/lib/*/libpmix.so >/dev/null 2>&1; }
have_hdf5_tools() { command -v h5dump >/dev/null; }
have_h5py() { python3 -c 'import h5py' 2>/dev/null || /usr/bin/python3 -c 'import h5py' 2>/dev/null; }
have_aarch64() { command -v aarch64-linux-gnu-g++ >/dev/null; }
have_doxygen() { command -v doxygen >/dev/null; }
have_clang_tidy() { compgen -c clang-tidy- | grep -E "^clang-tidy-(1[6-9]|2[0-9])$" >/dev/null; }
# a clang 16 or newer with libFuzzer's runtime: one release compiles and links, because newer objects need functions of a newer runtime
have_fuzz() {
  local clang
  for clang in $(compgen -c clang++- | grep -E '^clang\+\+-(1[6-9]|[2-9][0-9])$' | sort -u); do
    ! echo 'extern "C" int LLVMFuzzerTestOneInput(const unsigned char*, unsigned long) { return 0; }' |
      "$clang" -fsanitize=fuzzer,address,undefined -x c++ - -o /dev/null 2>/dev/null || return 0
  done
  return 1
}
have_python() { have_download; }
have_package_tools() { [ -e "$package_tools/whole-${package_tool_pins[*]}" ] || { command -v eb && command -v reframe && command -v mkdocs; } >/dev/null; }

# missing CAPABILITY...: prints those that are missing, one per line
missing() { local c; for c in "$@"; do "have_$c" || printf '%s\n' "$c"; done; }

# Prints the name of this distribution's list, e.g. debian-12. The list may not exist.
distribution() {
  local ID='' VERSION_ID=''
  # shellcheck disable=SC1091
  [ ! -r /etc/os-release ] || . /etc/os-release
  case $ID in rhel | almalinux | centos) ID=rocky ;; esac
  [ "$ID" != rocky ] || VERSION_ID=${VERSION_ID%%.*}
  printf '%s-%s' "$ID" "$VERSION_ID"
}

# packages_of LIST CAPABILITY...: prints the packages that provide them
packages_of() {
  local list=$1
  shift
  [ -r "$list" ] || return 0
  awk -v wanted=" $* " 'index(wanted, " " $1 " ") { for (i = 2; i <= NF; i++) { printf "%s%s", gap, $i; gap = " " } }' "$list"
}

# Prints the command that gives root rights, nothing if this is root. Fails if root rights are not available or not permitted.
as_root() {
  [ -z "${HORTATOR_NO_INSTALL:-}" ] || return 1
  [ "$(id -u)" != 0 ] || return 0
  command -v sudo >/dev/null || return 1
  if sudo -n true 2>/dev/null; then echo 'sudo -n'; return; fi
  # sudo may ask for a password only on a terminal
  [ -t 0 ] && sudo -v && echo sudo
}

index_updated=0
# install_packages SUDO PACKAGE...
install_packages() {
  local sudo=$1
  shift
  # shellcheck disable=SC2086  # $sudo is empty, or a command with options
  if command -v apt-get >/dev/null; then
    local apt="$sudo env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3" size
    if [ "$index_updated" = 0 ]; then
      $apt update </dev/null
      index_updated=1
      # finish an interrupted installation first
      if [ -n "$(dpkg --audit)" ]; then
        $sudo env DEBIAN_FRONTEND=noninteractive dpkg --configure -a </dev/null >/dev/null || true
        $apt install -y --fix-broken --no-install-recommends </dev/null >/dev/null
      fi
    fi
    size=$(LC_ALL=C apt-get -q install --assume-no --no-install-recommends "$@" </dev/null 2>/dev/null | sed -n 's/^Need to get \(.*B\).* of archives.*/\1/p') || true
    [ -z "$size" ] || log "the packages are a download of $size"
    $apt install -y --no-install-recommends -o Dpkg::Use-Pty=0 "$@" </dev/null >/dev/null
  elif command -v dnf >/dev/null; then
    # parallel HDF5, Catch2 and nlohmann-json are in EPEL and CRB
    $sudo dnf install -y -q epel-release dnf-plugins-core </dev/null
    $sudo dnf config-manager --set-enabled crb </dev/null
    $sudo dnf install -y -q "$@" </dev/null
  else
    return 1
  fi
}

# stop_for LIST CAPABILITY...: prints what is missing and which packages provide it, then exits.
stop_for() {
  local list=$1 c packages
  shift
  {
    echo "hortator: Missing on this machine:"
    for c in "$@"; do
      awk -v c="$c" '$1 == c { $1 = ""; print "  -" $0 }' "$lists/modules.txt"
    done
    packages=$(packages_of "$list" "$@")
    [ -z "$packages" ] || echo "hortator: Packages of this distribution that provide it: $packages"
    if [ -n "${HORTATOR_NO_INSTALL:-}" ]; then echo "hortator: Nothing was installed, because HORTATOR_NO_INSTALL is set. Unset it, or install or load these yourself"; fi
  } >&2
  exit 1
}

# ensure_packages REQUIRED...: installs what is missing, or exits before anything is built. Downloads LibTorch in the meantime. A command that defines
# `announce` says there what it will do; its argument is the list of packages.
ensure_packages() {
  local list absent=() wanted=() sudo packages
  list=$lists/$(distribution).txt
  probe_headers
  mapfile -t absent < <(missing "$@")
  if [ ${#absent[@]} -eq 0 ]; then
    announce_to_user ''
    return 0
  fi
  mapfile -t wanted < <(missing extra clang compression images unicode)  # optional: installed together with required ones, but not by themselves
  packages=$(packages_of "$list" "${absent[@]}" "${wanted[@]}")
  if [ -z "$packages" ] || ! sudo=$(as_root); then stop_for "$list" "${absent[@]}"; fi
  announce_to_user "$packages"
  log "installing from $(distribution): $packages"
  if ! have_download && [[ " $* " == *' download '* ]]; then install_required "$sudo" "$(packages_of "$list" download)"; fi
  begin_libtorch
  install_required "$sudo" "$packages"
  hash -r
  probe_headers
  mapfile -t absent < <(missing "$@")
  [ ${#absent[@]} -eq 0 ] || stop_for "$list" "${absent[@]}"
}
announce_to_user() { if declare -F announce >/dev/null; then announce "$1"; fi; }

# install_required SUDO PACKAGES
install_required() {
  # shellcheck disable=SC2086
  install_packages "$1" $2 || fail "Cannot install these packages (see above): $2. Fix the cause, then run the same command again"
}

# Installs what only the tests use. Never fails: tests whose tools are missing are skipped.
ensure_test_packages() {
  install_test_packages "${test_capabilities[@]}"
  unpack_environment_modules
}
report_test_packages() {
  local absent=()
  mapfile -t absent < <(missing "${test_capabilities[@]}" environment_modules package_tools)
  [ ${#absent[@]} -eq 0 ] || log "not installed, so the tests that need it are skipped: ${absent[*]}"
}

# install_test_packages CAPABILITY...: installs those that are missing, if permitted
install_test_packages() {
  local list absent=() sudo packages
  list=$lists/tests/$(distribution).txt
  mapfile -t absent < <(missing "$@")
  packages=$(packages_of "$list" "${absent[@]}")
  if [ -z "$packages" ] || ! sudo=$(as_root); then return 0; fi
  log "installing for the tests from $(distribution): $packages"
  # shellcheck disable=SC2086
  install_packages "$sudo" $packages || log 'could not install these packages (see above): continuing without them'
  hash -r
  probe_headers
}

# Debian does not allow Lmod and Environment Modules to be installed together: the latter is unpacked into .deps instead.
unpack_environment_modules() {
  if [ -n "${HORTATOR_NO_INSTALL:-}" ] || have_environment_modules || ! command -v dpkg-deb >/dev/null; then return 0; fi
  local aside=$deps/environment-modules
  rm -rf "$aside" "$aside.part"
  mkdir -p "$aside.part"
  # renamed when complete: what an interrupt leaves does not count
  (cd "$aside.part" && apt-get -qq download environment-modules >/dev/null 2>&1 && dpkg-deb -x ./*.deb . && rm ./*.deb && mv "$PWD" "$aside") ||
    log 'could not download environment-modules'
}

# EasyBuild and ReFrame, which read the recipes in share/packages, and MkDocs, which builds the site of the guides: from PyPI, in their own
# virtual environment. The last file written marks it as complete.
package_tools=$deps/package-tools
package_tool_pins=(easybuild==5.4.1 reframe-hpc==4.10.4 mkdocs==1.6.1 mkdocs-material==9.8.2)
fetch_package_tools() {
  if [ -n "${HORTATOR_NO_INSTALL:-}" ] || have_package_tools || ! have_download; then return 0; fi
  log "downloading for the tests from PyPI: ${package_tool_pins[*]}"
  rm -rf "$package_tools"
  # without pip inside, which is a package of its own in Debian
  if python3 -m venv --without-pip "$package_tools" &&
    timeout 300 python3 -m pip --python "$package_tools/bin/python" --disable-pip-version-check --no-input --retries 1 --timeout 15 -q install "${package_tool_pins[@]}"; then
    touch "$package_tools/whole-${package_tool_pins[*]}"
  else
    log 'could not download EasyBuild, ReFrame and MkDocs'
  fi
}
