#!/usr/bin/env bash
# settings.sh HORTATOR: the ready settings files are valid, and render the jobs that they describe.
set -euo pipefail
# shellcheck source=tests/setup/support.sh
. "$(dirname "${BASH_SOURCE[0]}")/../setup/support.sh"
for name in $(compgen -e | grep -E '^(HORTATOR|SLURM|PBS|XDG|HF)_'); do unset "$name"; done
hortator=$1
settings=$source_tree/share/examples/settings
export HOME=$scratch
cd "$scratch"
for file in "$settings"/*.yaml; do
  run "$hortator" config validate "$file"
  expect_code 0
done
printf '#!/bin/sh\n' >train
chmod +x train
job() { cp "$settings/$1.yaml" hortator.yaml; run "$hortator" job -- ./train; expect_code 0; }
job nodes_with_zero
for line in '#SBATCH --nodes=4' '#SBATCH --ntasks-per-node=4' '#SBATCH --gpus-per-node=4' '#SBATCH --partition=gpu' '#SBATCH --account=my-project' \
  '#SBATCH --time=12:00:00' 'HORTATOR_ZERO_STAGE=.?FULL_SHARD' 'HORTATOR_MIXED_PRECISION=.?bf16' 'HORTATOR_GRADIENT_ACCUMULATION_STEPS=.?4'; do expect_line "$line"; done
job cpu_cluster
for line in '#SBATCH --nodes=8' '#SBATCH --ntasks-per-node=2' '#SBATCH --partition=standard' 'HORTATOR_CPU=.?(1|true)'; do expect_line "$line"; done
expect_no_line '^#SBATCH --gpus'
cp "$settings/gpu_node.yaml" hortator.yaml
run "$hortator" launch --dry-run ./train
expect_code 0
expect_line '(-n|-np) 4'
