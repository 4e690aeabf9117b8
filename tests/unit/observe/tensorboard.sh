#!/usr/bin/env bash
# A run that was killed twice and resumed has every number once: tensorboard.sh TRACKED MPIRUN... Checked by a strict reader, and by
# TensorBoard's loader if HORTATOR_TEST_PYTHON names a Python with the package tensorboard.
set -u
tracked=$1
shift
python=${HORTATOR_TEST_PYTHON:-python3}
command -v "$python" >/dev/null || { echo "skipped: there is no $python"; exit 77; }
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"$@" "$tracked" "$work" 1000 400 777 >"$work/first.log" 2>&1 && { echo 'the first run was not killed'; exit 1; }
"$@" "$tracked" "$work" 1000 900 950 >"$work/second.log" 2>&1 && { echo 'the second run was not killed'; exit 1; }
"$@" "$tracked" "$work" 1000 0 0 >"$work/third.log" 2>&1 || { cat "$work/third.log"; exit 1; }

"$python" "$here/read_events.py" "$work/logs" || exit 1
"$python" -c 'import tensorboard' 2>/dev/null || { echo "read without TensorBoard: $python has none (name one by HORTATOR_TEST_PYTHON)"; exit 0; }
"$python" - "$work/logs" <<'PY'
import os
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
texts = events.Tensors("words/text_summary")
assert [text.step for text in texts] == list(range(0, 1000, 50)), [text.step for text in texts]
assert texts[3].tensor_proto.string_val[0] == b"at 150"
histogram = events.Histograms("numbers")[0].histogram_value
assert histogram.num == 100 and histogram.min == 0 and histogram.max == 99, histogram
if os.environ.get("HORTATOR_TEST_PNG") != "0":  # a build without libpng writes none
    image = events.Images("image")[0]
    assert (image.width, image.height) == (6, 4) and image.encoded_image_string[1:4] == b"PNG", image
from tensorboard.plugins.hparams import metadata
settings = events.SummaryMetadata("_hparams_/session_start_info")
start = metadata.parse_session_start_info_plugin_data(settings.plugin_data.content)
assert start.hparams["lr"].number_value == 0.5 and start.hparams["name"].string_value == "test", start
PY
