# Words and paths that every set-up file uses. Sourced, never run.
# shellcheck shell=bash disable=SC2034,SC2154  # one program in several files: the names of one are used in others

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
deps=$root/.deps

say() { printf 'hortator: %s\n' "$*"; }
fail() { printf 'hortator: %s\n' "$*" >&2; exit 1; }
cores() { env -u OMP_NUM_THREADS -u OMP_THREAD_LIMIT nproc; }  # nproc would obey the threads that a job asks for
