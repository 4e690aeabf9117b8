#!/usr/bin/env bash
# Modulefiles of an installation that was moved can be loaded, used and unloaded.
#   check.sh lmod|lmod_tcl|environment_modules TREE
set -euo pipefail
kind=$1 tree=$2
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=tests/setup/support.sh
. "$here/../setup/support.sh"
for name in $(compgen -e | grep -E '^(LMOD|MODULE|_LM|__LM|HORTATOR|CMAKE_PREFIX)' || true); do unset "$name"; done
unset MANPATH LD_LIBRARY_PATH PKG_CONFIG_PATH

case $kind in
  lmod | lmod_tcl)
    [ -r /usr/share/lmod/lmod/init/bash ] || { echo 'skipped: Lmod is not installed'; exit 77; }
    set +u
    # shellcheck disable=SC1091
    . /usr/share/lmod/lmod/init/bash
    set -u
    export LMOD_PAGER=none LMOD_CACHED_LOADS=no
    ;;
  environment_modules)
    modulecmd=$(find "$tree/.deps/environment-modules" /usr/lib /usr/share/Modules -name modulecmd.tcl -print -quit 2>/dev/null) || true
    if [ -z "$modulecmd" ] || ! command -v tclsh >/dev/null; then echo 'skipped: environment-modules is not installed'; exit 77; fi
    export MODULEPATH='' LOADEDMODULES=''
    module() { eval "$(tclsh "$modulecmd" bash "$@")"; }
    ;;
esac
format=${kind#lmod_}
case $format in environment_modules) format=tcl ;; esac

# An installation with only the modulefiles and a program, created in one place and moved to another.
site() { # NAME [OPTION...]
  cmake -S "$here/site" -B "$scratch/build/$1" "${@:2}" >"$scratch/log" 2>&1 || wrong "$(cat "$scratch/log")"
  cmake --install "$scratch/build/$1" --prefix "$scratch/made/$1" >/dev/null
  mkdir -p "$scratch/made/$1/bin" "$scratch/made/$1/share/man/man1"
  printf '#!/bin/sh\necho "hortator of %s"\n' "$1" >"$scratch/made/$1/bin/hortator"
  chmod +x "$scratch/made/$1/bin/hortator"
  mkdir -p "$scratch/moved"
  mv "$scratch/made/$1" "$scratch/moved/$1"
}
folder() { echo "$scratch/moved/$1/share/modulefiles/$format"; }
is() { [ "$2" = "$3" ] || wrong "$1: expected '$3', got '$2'"; }
loads() { # MODULE...: loads them in a subshell; sets `output` and `code`
  code=0
  output=$(module load "$@" 2>&1) || code=$?
  case $output in *rror:* | *ERROR* | *cannot\ be\ loaded* | *No\ Hortator*) code=1 ;; esac
}

site plain
root=$scratch/moved/plain
module use "$(folder plain)"
# Lmod removes duplicates from PATH
PATH=$(tr : '\n' <<<"$PATH" | awk '!seen[$0]++' | paste -sd :)
export LD_LIBRARY_PATH=/before PATH
before=$PATH
version=0.2.0-torch2.15.0-cpu-openmpi5.0.7
listed=$(module -t avail hortator 2>&1)
[[ $listed == *"hortator/$version"* ]] || wrong "the module is not listed: $listed"
output=$(module help "hortator/$version" 2>&1)
[[ $output == *'LibTorch 2.15.0, Open MPI 5.0.7, HDF5 1.14.5'* ]] || wrong 'help does not print the libraries that it was built with'
output=$(module whatis "hortator/$version" 2>&1)
[[ $output == *'LibTorch training loops'* ]] || wrong 'whatis does not print the description'

module load "hortator/$version"
is HORTATOR_ROOT "${HORTATOR_ROOT:-}" "$root"
is HORTATOR_DIR "${HORTATOR_DIR:-}" "$root"
is HORTATOR_LIB "${HORTATOR_LIB:-}" "$root/lib64"
is HORTATOR_INC "${HORTATOR_INC:-}" "$root/include"
is HORTATOR_FORTRAN_INC "${HORTATOR_FORTRAN_INC:-}" ''
is HORTATOR_SITE "${HORTATOR_SITE:-}" ''
is PATH "$PATH" "$root/bin:$before"
is LD_LIBRARY_PATH "$LD_LIBRARY_PATH" "$root/lib64:/before"
is CMAKE_PREFIX_PATH "${CMAKE_PREFIX_PATH:-}" "$root"
is PKG_CONFIG_PATH "${PKG_CONFIG_PATH:-}" "$root/lib64/pkgconfig"
case :${MANPATH:-}: in *":$root/share/man:"*) ;; *) wrong "MANPATH is '${MANPATH:-}'" ;; esac
is 'the hortator on PATH' "$(hortator)" 'hortator of plain'
! grep -rq 'torch/lib\|LIBTORCH' "$(folder plain)" || wrong "the modulefile contains LibTorch's folder"
module unload hortator
is 'HORTATOR_ROOT after unload' "${HORTATOR_ROOT:-}" ''
is 'PATH after unload' "$PATH" "$before"
is 'LD_LIBRARY_PATH after unload' "$LD_LIBRARY_PATH" /before
is 'CMAKE_PREFIX_PATH after unload' "${CMAKE_PREFIX_PATH:-}" ''

# two versions are never loaded at the same time: Lmod swaps them, Environment Modules refuses the second
site cuda -DCUDA=ON -DFORTRAN=ON
module use "$(folder cuda)"
module load hortator/0.2.0-torch2.15.0-cuda13.0-openmpi5.0.7
is 'the hortator on PATH' "$(hortator)" 'hortator of cuda'
is HORTATOR_FORTRAN_INC "${HORTATOR_FORTRAN_INC:-}" "$scratch/moved/cuda/include/hortator-fortran"
module load "hortator/$version" >"$scratch/log" 2>&1 || true
case $kind in
  environment_modules) is 'the hortator on PATH' "$(hortator)" 'hortator of cuda' ;;
  *) is 'the hortator on PATH' "$(hortator)" 'hortator of plain' ;;
esac
module unload hortator
is 'PATH at the end' "$PATH" "$before"

# one installation for several MPIs: the MPI's module chooses the library
site several -DHORTATOR_MPI_ALSO=mpich -DHORTATOR_MODULE_VERSION=several
root=$scratch/moved/several
mkdir -p "$scratch/mpis/openmpi" "$scratch/mpis/cray-mpich"
printf '#%%Module1.0\nsetenv SITE_MPI openmpi\n' >"$scratch/mpis/openmpi/5"
printf '#%%Module1.0\nsetenv SITE_MPI cray-mpich\n' >"$scratch/mpis/cray-mpich/8"
module use "$(folder several)" "$scratch/mpis"
for pair in openmpi/5: "cray-mpich/8:$root/lib64/hortator/mpich:"; do
  module load "${pair%%:*}" hortator/several
  is "LD_LIBRARY_PATH with ${pair%%:*}" "$LD_LIBRARY_PATH" "${pair#*:}$root/lib64:/before"
  module unload "${pair%%:*}"
  module unload hortator/several
  is 'LD_LIBRARY_PATH after unload' "$LD_LIBRARY_PATH" /before
done

# what the site's Hortator depends on, and its default profile
site strict '-DHORTATOR_MODULE_PREREQUISITES=mpi/5' -DHORTATOR_MODULE_VERSION=strict -DHORTATOR_MODULE_SITE=lumi-c
module use "$(folder strict)"
loads hortator/strict
[ "$code" != 0 ] || wrong 'it loads although mpi/5 does not exist'
expect_line 'mpi/5'
mkdir -p "$scratch/others/mpi"
printf '#%%Module1.0\nsetenv SITE_MPI 5\n' >"$scratch/others/mpi/5"
module use "$scratch/others"
case $kind in  # Environment Modules loads it automatically only where the site has configured that
  environment_modules) module load mpi/5 hortator/strict ;;
  *) module load hortator/strict ;;
esac
is 'the MPI that was loaded with it' "${SITE_MPI:-}" 5
is HORTATOR_SITE "${HORTATOR_SITE:-}" lumi-c
is 'the hortator on PATH' "$(hortator)" 'hortator of strict'
module unload hortator/strict
is 'HORTATOR_SITE after unload' "${HORTATOR_SITE:-}" ''
case $kind in
  environment_modules) module unload mpi/5 ;;
  *) is 'the MPI after unload' "${SITE_MPI:-}" '' ;;
esac

# a copy in another place cannot find the installation, which is an error
mkdir -p "$scratch/copied/hortator"
suffix=
case $format in lmod) suffix=.lua ;; esac
cp "$(folder plain)/hortator/$version$suffix" "$scratch/copied/hortator/copied$suffix"
module use "$scratch/copied"
loads hortator/copied
[ "$code" != 0 ] || wrong 'a copy in another place loads'
output=$(tr '\n' ' ' <<<"$output") # undo Lmod's line breaks
expect_line 'No Hortator in'
