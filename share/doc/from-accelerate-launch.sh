#!/usr/bin/env bash
# Makes from-accelerate-launch.md, beside this script, from src/launch/settings/reference_table.inc: from-accelerate-launch.sh [--check]
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
table=$here/../../src/launch/settings/reference_table.inc
page=$here/from-accelerate-launch.md

make_page() {
  cat <<'MD'
# From `accelerate launch`

What becomes of each flag of `accelerate launch` (1.15) and of each key of `default_config.yaml`, which is read as it is: given by `--config_file`,
or found where Accelerate keeps it when you have no settings of Hortator's own. `hortator config validate FILE` says the same of a file, line by line.
Made by `share/doc/from-accelerate-launch.sh` from `src/launch/settings/reference_table.inc`.

*honoured*: does here what it does there. *noted*: may stay, and changes nothing. *refused*: an error in a file, with the way round, unless its value
says that it is not used.

| name | in | verdict | here |
|---|---|---|---|
MD
  sed -nE 's/^\{"([^"]*)", Place::(flag|file|both), Verdict::([a-z]+), "([^"]*)", "([^"]*)"\},$/\1\t\2\t\3\t\4\t\5/p' "$table" |
    awk -F'\t' '{
      where = $2 == "both" ? "flag, file" : $2
      key = $4 == "" ? "" : "key `" $4 "`" ($5 == "" ? "" : "; ")
      printf "| `%s%s` | %s | %s | %s%s |\n", ($2 == "file" ? "" : "--"), $1, where, $3, key, $5
    }'
}

if [ "${1:-}" = --check ]; then
  rows=$(grep -c '^{"' "$table")
  [ "$(make_page | grep -c '^| `')" = "$rows" ] || { echo "some lines of $table do not read as one name a line" >&2; exit 1; }
  make_page | diff "$page" - || { echo "$page is older than the table: run $0" >&2; exit 1; }
else
  make_page >"$page"
fi
