#!/usr/bin/env bash
# MLflow reads a run that was killed and resumed: mlflow.sh TRACKED MPIRUN... HORTATOR_TEST_PYTHON names a Python with the package mlflow or
# mlflow-skinny.
set -u
tracked=$1
shift
python=${HORTATOR_TEST_PYTHON:-python3}
"$python" -c 'import mlflow' 2>/dev/null || { echo "skipped: $python has no mlflow (name one by HORTATOR_TEST_PYTHON)"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"$@" "$tracked" "$work" 1000 400 777 >"$work/first.log" 2>&1 && { echo 'the first run was not killed'; exit 1; }
"$@" "$tracked" "$work" 1000 0 0 >"$work/second.log" 2>&1 || { cat "$work/second.log"; exit 1; }

MLFLOW_ALLOW_FILE_STORE=true "$python" - "$work/logs/mlruns" <<'PY'
import sys

from mlflow.store.tracking.file_store import FileStore
from mlflow.entities import ViewType

store = FileStore(sys.argv[1])
experiment = store.get_experiment_by_name("run")
runs = store.search_runs([experiment.experiment_id], "", ViewType.ALL)
assert len(runs) == 1, runs
run = runs[0]
assert run.info.status == "FINISHED" and run.info.end_time >= run.info.start_time, run.info
assert run.data.params == {"lr": "0.5", "name": "test"}, run.data.params
assert run.data.tags["mlflow.runName"] == run.info.run_name, run.data.tags
for name, value in (("loss", lambda step: 1 / (step + 1)), ("rate", float)):
    points = sorted(store.get_metric_history(run.info.run_id, name), key=lambda point: point.step)
    assert [point.step for point in points] == list(range(1000)), f"{name}: {len(points)} points"
    assert all(abs(point.value - value(point.step)) < 1e-12 for point in points), name
PY
