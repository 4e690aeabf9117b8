#!/usr/bin/env bash
# Writes the spellings of Slurm, PBS and mpirun into the man page, from src/launch/settings/synonyms.inc: spellings.sh [--check]
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
table=$here/../../src/launch/settings/synonyms.inc
page=$here/hortator.1

# The rows with the same meaning share an entry.
entries() {
  sed -nE 's/^\{"([^"]*)", ([a-z_]+)(, "([^"]*)")?(, ([a-z]+))?(, ([a-z_]+))?.*\},$/\1\t\2\t\4\t\6\t\8/p' "$table" | awk -F'\t' '
    function roff(text) { gsub(/-/, "\\-", text); return text }
    function dashed(text) { gsub(/_/, "-", text); return roff(text) }
    {
      if ($2 == "setting") meaning = "sets \\-\\-" dashed($3)
      else if ($2 == "gres") meaning = "sets \\-\\-gpus\\-per\\-node for GPUs; other resources are passed on to Slurm"
      else if ($2 == "resources") meaning = "sets \\-\\-nodes, \\-\\-ranks\\-per\\-node, \\-\\-cpus\\-per\\-node, \\-\\-gpus\\-per\\-node, \\-\\-threads, \\-\\-mem, \\-\\-time and \\-\\-filesystems; other resources are passed on. A launch takes it as \\-\\-prefix\\-output unless a resource follows"
      else if ($2 == "variables") meaning = "sets \\-\\-environment"
      else if ($2 == "mail_points") meaning = "sets \\-\\-mail\\-type"
      else if ($2 == "attributes") meaning = "sets \\-\\-dependency for depend=; others are passed on"
      else if ($2 == "directive") meaning = "passed on to sbatch; by a launch, to srun"
      else if ($2 == "pbs_line") meaning = "passed on to qsub"
      else if ($2 == "option") meaning = $4 == "slurm" ? "passed on to srun" : "passed on to mpirun"
      else if ($2 == "noted") meaning = "accepted without effect: " roff($3)
      else meaning = "refused: " roff($3)
      if ($4 == "pbs") meaning = meaning " (PBS)"
      else if ($4 == "slurm" && length($1) == 2) meaning = meaning " (Slurm)"
      else if ($4 == "mpi" && length($1) == 2) meaning = meaning " (mpirun)"
      if (!(meaning in spellings)) order[++count] = meaning
      spellings[meaning] = spellings[meaning] (meaning in spellings && spellings[meaning] != "" ? ", " : "") roff($1)
    }
    END { for (i = 1; i <= count; ++i) printf ".TP\n.B %s\n%s\n", spellings[order[i]], order[i] }'
}

make_page() {
  awk '/^\.\\" spellings begin/ { print; exit } { print }' "$page"
  entries
  awk '/^\.\\" spellings end/ { found = 1 } found { print }' "$page"
}

if [ "${1:-}" = --check ]; then
  rows=$(grep -c '^{"' "$table")
  parsed=$(sed -nE 's/^\{"([^"]*)", ([a-z_]+)(, "([^"]*)")?(, ([a-z]+))?(, ([a-z_]+))?.*\},$/\1/p' "$table" | wc -l)
  [ "$rows" = "$parsed" ] || { echo "some lines of $table do not have the form of one spelling per line" >&2; exit 1; }
  make_page | diff "$page" - || { echo "$page is out of date: run $0" >&2; exit 1; }
else
  make_page >"$page.new"
  mv "$page.new" "$page"
fi
