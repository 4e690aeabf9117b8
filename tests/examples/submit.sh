#!/usr/bin/env bash
# submit.sh HORTATOR DIGITS SCRIPT: the walk from the first try to a scaling study, with a scheduler that only says what it was asked.
set -euo pipefail
# shellcheck source=tests/setup/support.sh
. "$(dirname "${BASH_SOURCE[0]}")/../setup/support.sh"
for name in $(compgen -e | grep -E '^(HORTATOR|SLURM|PBS|XDG|HF)_'); do unset "$name"; done
mkdir "$scratch/bin"
printf '#!/bin/sh\necho "$*" >>"%s/asked"\necho 77\n' "$scratch" >"$scratch/bin/sbatch"
chmod +x "$scratch/bin/sbatch"
ln -s "$1" "$scratch/bin/hortator"
ln -s "$2" "$scratch/digits"
script=$3
cd "$scratch"
HOME=$scratch PATH=$scratch/bin:$PATH run "$script"
expect_code 0
expect_line '^epoch 3: [0-9.]+ % right'
expect_line 'runs/digits  finished'
[ "$(wc -l <asked)" = 5 ] || wrong 'a job and a study of four sizes are five jobs'
[ -s digits.svg ] || wrong 'there is no picture'
