# Functions and paths that every set-up file uses. To be sourced, not executed.
# shellcheck shell=bash disable=SC2034,SC2154  # the files of the set-up share their variables

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
deps=$root/.deps

log() { printf 'hortator: %s\n' "$*"; }
fail() { printf 'hortator: %s\n' "$*" >&2; exit 1; }
cores() { env -u OMP_NUM_THREADS -u OMP_THREAD_LIMIT nproc; }  # without these variables, which limit nproc as well
duration() { if [ "$1" -lt 60 ]; then echo "$1 s"; else echo "$(($1 / 60)) min $(($1 % 60)) s"; fi; }  # of seconds
