#!/usr/bin/env bash
# submit.sh HORTATOR DIGITS SCRIPT: the commands from the first test to a scaling study work, with a stub scheduler that records its calls.
set -euo pipefail
# shellcheck source=tests/setup/support.sh
. "$(dirname "${BASH_SOURCE[0]}")/../setup/support.sh"
for name in $(compgen -e | grep -E '^(HORTATOR|SLURM|PBS|XDG|HF)_'); do unset "$name"; done
mkdir "$scratch/bin"
printf '#!/bin/sh\necho "$*" >>"%s/calls"\necho 77\n' "$scratch" >"$scratch/bin/sbatch"
chmod +x "$scratch/bin/sbatch"
ln -s "$1" "$scratch/bin/hortator"
ln -s "$2" "$scratch/digits"
script=$3
cd "$scratch"
HOME=$scratch PATH=$scratch/bin:$PATH run "$script"
expect_code 0
expect_line '^epoch 3: [0-9.]+ % right'
expect_line 'runs/digits  finished'
[ "$(wc -l <calls)" = 5 ] || wrong 'one job and a study of four sizes did not submit five jobs'
[ -s digits.svg ] || wrong 'digits.svg is missing'
