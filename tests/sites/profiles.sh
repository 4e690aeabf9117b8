#!/usr/bin/env bash
# profiles.sh HORTATOR: every profile in share/sites is valid, says that it is untested and where its values come from, and renders a job with
# exactly these values.
set -euo pipefail
# shellcheck source=tests/setup/support.sh
. "$(dirname "${BASH_SOURCE[0]}")/../setup/support.sh"
for name in $(compgen -e | grep -E '^(HORTATOR|SLURM|PBS|XDG|HF)_'); do unset "$name"; done
hortator=$1
export HOME=$scratch
cd "$scratch"
printf '#!/bin/sh\n' >train
chmod +x train

value() { sed -n "s/^$1: *//p" "$profile"; }
# The line must be a directive of the scheduler if the profile has the key, and absent if not.
expect_directive() { # KEY OPTION
  local value
  value=$(value "$1")
  if [ -n "$value" ]; then
    grep -qxF -- "#SBATCH $2=$value" <<<"$output" || wrong "$site: the job has no '$2=$value'"
  else
    expect_no_line "^#SBATCH $2="
  fi
}

count=0
for profile in "$source_tree"/share/sites/*.yaml; do
  site=$(basename "$profile" .yaml)
  count=$((count + 1))
  grep -qE '^# .+\. Untested: taken from public documentation as of 20[0-9]{2}\.$' <<<"$(head -n 1 "$profile")" || wrong "$site does not say in its first line what it is, and that it is untested"
  grep -qE '^# https://[^ ]+' "$profile" || wrong "$site does not name the document that it was taken from"
  run "$hortator" config validate "$profile"
  expect_code 0
  run "$hortator" job --site "$site" --nodes 2 --ranks-per-node "$(value ranks_per_node | grep . || echo 4)" --account project -- ./train
  expect_code 0
  case $(value scheduler) in
    slurm)
      expect_directive queue --partition
      expect_directive qos --qos
      expect_directive constraint --constraint
      expect_directive gpus_per_node --gpus-per-node
      cpus=$(value cpus_per_node) ranks=$(value ranks_per_node)
      [ -z "$cpus" ] || expect_line "^#SBATCH --cpus-per-task=$((cpus / ${ranks:-4}))\$"
      ;;
    pbs) expect_line "^#PBS -q $(value queue)\$" ;;
    *) wrong "$site has no scheduler" ;;
  esac
  directives=$(value directives)
  while read -r directive; do
    [ -z "$directive" ] || grep -qxF -- "#SBATCH $directive" <<<"$output" || wrong "$site: the job has no '$directive'"
  done < <(tr -d '[]" ' <<<"$directives" | tr , '\n')
  [ "$(value use_cpu)" != true ] || expect_line 'HORTATOR_CPU='
done
[ "$count" -ge 15 ] || wrong "only $count profiles were found"

# What the test is for: a profile with a key that does not exist, or with a value of the wrong kind, is rejected.
for line in 'queues: gpu' 'cpus_per_node: many'; do
  echo "$line" >broken.yaml
  run "$hortator" config validate broken.yaml
  expect_code 2
done
