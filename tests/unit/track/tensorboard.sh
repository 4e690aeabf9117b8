#!/usr/bin/env bash
# TensorBoard's own loader returns every number once, of a run that was killed and resumed: tensorboard.sh TRACKED
# MPIRUN... HORTATOR_TEST_PYTHON names a Python that has the package tensorboard.
set -u
tracked=$1
shift
python=${HORTATOR_TEST_PYTHON:-python3}
"$python" -c 'import tensorboard' 2>/dev/null || { echo "skipped: $python has no tensorboard (name one by HORTATOR_TEST_PYTHON)"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"$@" "$tracked" "$work" 1000 400 777 >"$work/first.log" 2>&1 && { echo 'the first run was not killed'; exit 1; }
"$@" "$tracked" "$work" 1000 900 950 >"$work/second.log" 2>&1 && { echo 'the second run was not killed'; exit 1; }
"$@" "$tracked" "$work" 1000 0 0 >"$work/third.log" 2>&1 || { cat "$work/third.log"; exit 1; }

"$python" - "$work/logs" <<'PY'
import csv
import json
import sys

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

logs = sys.argv[1]
everything = {"scalars": 0, "tensors": 0, "images": 0, "histograms": 0}
events = EventAccumulator(logs + "/run", size_guidance=everything).Reload()
tags = events.Tags()
assert sorted(tags["scalars"]) == ["loss", "rate"], tags
for name, value in (("loss", lambda step: 1 / (step + 1)), ("rate", float)):
    points = events.Scalars(name)
    assert [point.step for point in points] == list(range(1000)), f"{name}: {len(points)} points"
    assert all(abs(point.value - value(point.step)) < 1e-6 * (1 + abs(point.value)) for point in points), name
words = events.Tensors("words/text_summary")
assert [word.step for word in words] == list(range(0, 1000, 50)), [word.step for word in words]
assert words[3].tensor_proto.string_val[0] == b"at 150"
histogram = events.Histograms("numbers")[0].histogram_value
assert histogram.num == 100 and histogram.min == 0 and histogram.max == 99, histogram
image = events.Images("picture")[0]
assert (image.width, image.height) == (6, 4) and image.encoded_image_string[1:4] == b"PNG", image
from tensorboard.plugins.hparams import metadata
settings = events.SummaryMetadata("_hparams_/session_start_info")
start = metadata.parse_session_start_info_plugin_data(settings.plugin_data.content)
assert start.hparams["lr"].number_value == 0.5 and start.hparams["name"].string_value == "test", start

rows = [json.loads(line) for line in open(logs + "/run.jsonl")]
assert [row["step"] for row in rows] == list(range(1000))
table = list(csv.DictReader(open(logs + "/run.csv")))
assert [int(row["step"]) for row in table] == list(range(1000))
assert float(table[999]["loss"]) == 0.001
PY
