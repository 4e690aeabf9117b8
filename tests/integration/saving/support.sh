# shellcheck shell=bash
# To be sourced. Changes to a temporary folder, in which programs run and write their output to the file `output`.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1

fail() {
  echo "failed: $1" >&2
  cat output >&2
  exit 1
}
