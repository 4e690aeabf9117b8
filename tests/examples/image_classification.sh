#!/usr/bin/env bash
# image_classification.sh PROGRAM LAUNCHER...: a small ResNet learns to tell images apart, also on several ranks.
set -euo pipefail
# shellcheck source=tests/setup/support.sh
. "$(dirname "${BASH_SOURCE[0]}")/../setup/support.sh"
program=$1
launcher=("${@:2}")
command -v python3 >/dev/null || { echo 'skipped: python3 is missing'; exit 77; }
cd "$scratch"
mkdir model
cat >model/config.json <<'JSON'
{"architectures": ["ResNetForImageClassification"], "model_type": "resnet", "num_channels": 3, "embedding_size": 8, "hidden_sizes": [8, 16],
 "depths": [1, 1], "layer_type": "basic", "hidden_act": "relu"}
JSON
# images of one colour with noise: class by colour
python3 - <<'PY'
import os, random, struct, zlib
random.seed(1)
def png(path, width, height, color):
    rows = b''.join(b'\0' + b''.join(bytes(min(255, max(0, c + random.randrange(-40, 40))) for c in color) for _ in range(width)) for _ in range(height))
    def chunk(kind, data):
        return struct.pack('>I', len(data)) + kind + data + struct.pack('>I', zlib.crc32(kind + data))
    with open(path, 'wb') as file:
        file.write(b'\x89PNG\r\n\x1a\n' + chunk(b'IHDR', struct.pack('>IIBBBBB', width, height, 8, 2, 0, 0, 0)) + chunk(b'IDAT', zlib.compress(rows)) + chunk(b'IEND', b''))
for name, color in (('blue', (60, 60, 190)), ('red', (190, 60, 60)), ('yellow', (190, 190, 60))):
    os.makedirs('images/' + name)
    for i in range(20):
        png(f'images/{name}/{i}.png', 18 + i % 5, 16 + i % 3, color)
PY
common=(--model model --data images --image-size 16 --batch-size 4 --cpu)

run "${launcher[@]}" "$program" "${common[@]}" --random-weights --whole-model --num-epochs 4 --run-dir run
expect_code 0
expect_line '^epoch 3: (100|9[0-9.]*|8[0-9.]*) % of 12 images right'
steps=$(($(wc -l <run/loss.csv) - 1))
[ "$steps" -ge 12 ] || wrong "loss.csv has $steps steps"

train=("${launcher[@]}" "$program" "${common[@]}" --random-weights --whole-model --num-epochs 4)
run "${train[@]}" --run-dir parts --stop-after 3
expect_code 0
expect_line '^stopped behind step 3'
run "${train[@]}" --run-dir parts
expect_code 0
expect_line '^resumes in epoch 0 behind step 3'
cmp run/loss.csv parts/loss.csv || wrong 'the losses of the resumed run differ'

run "${train[@]}" --run-dir sharded --zero 2
expect_code 0
paste -d, run/loss.csv sharded/loss.csv | awk -F, 'NR > 1 { d = $2 - $4; if (d > 1e-4 || d < -1e-4) exit 1 }' || wrong 'ZeRO changes the losses'

run "${train[@]}" --run-dir synchronised --sync-batch-norm
expect_code 0
expect_line '^6 BatchNorm layers normalise over the batches of all ranks'
if [[ " ${launcher[*]} " == *' 1 '* || ${#launcher[@]} = 0 ]]; then
  cmp run/loss.csv synchronised/loss.csv || wrong '--sync-batch-norm changes the losses of one rank'
else
  ! cmp -s run/loss.csv synchronised/loss.csv || wrong '--sync-batch-norm changes nothing'
fi

run "${launcher[@]}" "$program" --model run/model --data images --image-size 16 --num-epochs 1 --batch-size 8 --flip --color-jitter --run-dir again --cpu
expect_code 0
expect_line '^epoch 0: .* % of 12 images right'

# A vision transformer, by one rank and by two that divide its layers. Dropout of nothing: the same losses.
if [[ " ${launcher[*]} " == *' 2 '* ]]; then
  mkdir transformer
  cat >transformer/config.json <<'JSON'
{"architectures": ["ViTForImageClassification"], "model_type": "vit", "image_size": 16, "patch_size": 8, "num_channels": 3, "hidden_size": 16,
 "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
JSON
  vit=(--model transformer --data images --image-size 16 --batch-size 4 --cpu --random-weights --whole-model --num-epochs 1 --lr 1e-3)
  run "$program" "${vit[@]}" --run-dir alone
  expect_code 0
  run "${launcher[@]}" "$program" "${vit[@]}" --tensor 2 --run-dir tensor
  expect_code 0
  paste -d, alone/loss.csv tensor/loss.csv | awk -F, 'NR > 1 { d = $2 - $4; if ($1 != $3 || d > 1e-4 || d < -1e-4) exit 1 } END { if (NR < 3) exit 1 }' ||
    wrong '--tensor changes the losses'
  run "${launcher[@]}" "$program" "${vit[@]}" --sync-batch-norm
  expect_code 2
  expect_line '--sync-batch-norm: the model has no BatchNorm layers'
  run "${train[@]}" --tensor 2 --run-dir without_plan
  expect_code 2
  expect_line 'has no plan'
fi

run "${launcher[@]}" "$program" "${common[@]}" --random-weights
expect_code 2
expect_line '--random-weights: expected --whole-model'
run "${launcher[@]}" "$program" --model model --data nowhere --cpu
expect_line 'nowhere'
run "$program" --help
expect_code 0
expect_line '--image-size N'
