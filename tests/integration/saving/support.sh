# shellcheck shell=bash
# Sourced. A folder of its own, in which programs run and print into `output`.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1

fail() {
  echo "failed: $1" >&2
  cat output >&2
  exit 1
}
