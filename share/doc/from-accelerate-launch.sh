#!/usr/bin/env bash
# Generates from-accelerate-launch.md (next to this script) from src/launch/settings/accelerate_names.inc: from-accelerate-launch.sh [--check]
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
table=$here/../../src/launch/settings/accelerate_names.inc
page=$here/from-accelerate-launch.md

make_page() {
  cat <<'MD'
# From `accelerate launch`

This table lists every flag of `accelerate launch` (1.15) and every key of `default_config.yaml`, and what Hortator does with it. Hortator reads
`default_config.yaml` unchanged: from `--config_file`, or from the place where Accelerate keeps it if you have no Hortator settings.
`hortator config validate FILE` prints the same information for a file, line by line. `hortator launch` and `job` accept the flags with _ or -.
A section of a file has an effect only if `distributed_type` selects it, as in Accelerate; a key without a value, known or not, has none.
`share/doc/from-accelerate-launch.sh` generates this page from `src/launch/settings/accelerate_names.inc`.

| support | meaning |
|---|---|
| *honoured* | Hortator has a setting with the same effect; the last column names it |
| *noted* | has no effect; you can leave it in the file, and on the command line, where it is reported |
| *refused* | an error, which explains the alternative; in a file only if its value means that the feature is used |

| Accelerate | where | support | Hortator |
|---|---|---|---|
MD
  sed -nE 's/^\{"([^"]*)", NameSource::(flag|file|both), Support::([a-z]+), "([^"]*)", "([^"]*)"\},$/\1\t\2\t\3\t\4\t\5/p' "$table" |
    awk -F'\t' '{
      where = $2 == "both" ? "flag, file" : $2
      key = $4 == "" ? "" : "key `" $4 "`" ($5 == "" ? "" : "; ")
      printf "| `%s%s` | %s | %s | %s%s |\n", ($2 == "file" ? "" : "--"), $1, where, $3, key, $5
    }'
}

if [ "${1:-}" = --check ]; then
  rows=$(grep -c '^{"' "$table")
  [ "$(make_page | grep -c '^| `')" = "$rows" ] || { echo "some lines of $table do not have the form of one name per line" >&2; exit 1; }
  make_page | diff "$page" - || { echo "$page is out of date: run $0" >&2; exit 1; }
else
  make_page >"$page"
fi
