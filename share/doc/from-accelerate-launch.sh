#!/usr/bin/env bash
# Makes from-accelerate-launch.md, beside this script, from src/launch/settings/accelerate_names.inc: from-accelerate-launch.sh [--check]
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
table=$here/../../src/launch/settings/accelerate_names.inc
page=$here/from-accelerate-launch.md

make_page() {
  cat <<'MD'
# From `accelerate launch`

How Hortator treats each flag of `accelerate launch` (1.15) and each key of Accelerate's `default_config.yaml`. Hortator reads that file unchanged: give it
by `--config_file`; without settings of Hortator's own, the file is found where Accelerate keeps it. `hortator config validate FILE` reports the same line by line.
Made by `share/doc/from-accelerate-launch.sh` from `src/launch/settings/accelerate_names.inc`.

*honoured*: works as in Accelerate. *noted*: accepted, has no effect. *refused*: an error in a file, with the alternative, unless its value says that it
is not used.

| Accelerate | in | support | Hortator |
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
  [ "$(make_page | grep -c '^| `')" = "$rows" ] || { echo "some lines of $table do not read as one name a line" >&2; exit 1; }
  make_page | diff "$page" - || { echo "$page is older than the table: run $0" >&2; exit 1; }
else
  make_page >"$page"
fi
