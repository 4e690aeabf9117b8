# Shared by shell tests: a temporary folder, a copy of the set-up, and expectations. To be sourced, not executed.
# shellcheck shell=bash disable=SC2034

source_tree=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

copy_tree() {
  tree=$scratch/tree
  mkdir -p "$tree/share" "$tree/tests" "$tree/jobs"
  cp -r "$source_tree/share/setup" "$source_tree/share/cmake" "$tree/share"
  cp "$source_tree/tests/run.sh" "$tree/tests"
  cp "$source_tree/jobs/quickstart.sh" "$tree/jobs"
}

# run COMMAND...: sets $code to its exit code and $output to everything that it printed
run() {
  code=0
  output=$("$@" 2>&1 </dev/null) || code=$?
}

wrong() { printf 'wrong: %s\nexit code %s, output:\n%s\n' "$1" "${code:-}" "${output:-}" >&2; exit 1; }
expect_code() { [ "$code" = "$1" ] || wrong "expected exit code $1"; }
expect_line() { grep -qE -- "$1" <<<"$output" || wrong "no line matches '$1'"; }
expect_no_line() { ! grep -qE -- "$1" <<<"$output" || wrong "a line matches '$1'"; }
expect_absent() { local path; for path in "$@"; do [ ! -e "$path" ] || wrong "$path exists"; done; }
expect_bytes() { [ "$(stat -c %s "$1")" = "$2" ] || wrong "$1 is not $2 bytes long"; }
