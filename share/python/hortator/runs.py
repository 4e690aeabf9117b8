"""Runs and scaling studies as tables of pandas."""

import json
import pathlib

import pandas

_RECORDS = ("status", "logs", "outcome.json", "restarts.jsonl", "failure.json", "checkpoint", "checkpoints", "task.json", "jobs")


def _json_of(file):
    try:
        return json.loads(pathlib.Path(file).read_text(encoding="utf-8", errors="replace"))
    except (OSError, ValueError):
        return None


def _json_lines(file):
    """The complete rows: a run may be writing the last one. Rows of fixed length may be blank."""
    try:
        text = pathlib.Path(file).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return
    for line in text.replace("\0", "").split("\n"):
        try:
            row = json.loads(line)
        except ValueError:
            continue
        if isinstance(row, dict):
            yield row


def _number(value):
    """Logs write numbers that JSON does not have as "NaN", "Infinity" and "-Infinity"."""
    return float(value) if value in ("NaN", "Infinity", "-Infinity") else value


def _log_file(folder):
    for row in _json_lines(folder / "status" / "ranks.jsonl"):
        rows = row.get("rows")
        if row.get("rank") == 0 and rows and pathlib.Path(rows).is_file():
            return pathlib.Path(rows)
    logs = sorted((folder / "logs").glob("*.jsonl"), key=lambda file: file.stat().st_mtime)
    return logs[-1] if logs else None


def _state_of(folder):
    """ "failed", "finished", "stopped" or, without a record of the end, "unknown"."""
    if (folder / "failure.json").exists():
        return "failed"
    outcome = _json_of(folder / "outcome.json")
    return outcome.get("outcome", "unknown") if isinstance(outcome, dict) else "unknown"


def _settings_of(folder):
    settings = {}
    for file in sorted((folder / "logs").glob("*.config.json")):
        settings.update(_json_of(file) or {})
    return settings


def _arguments_of(folder):
    task = _json_of(folder / "task.json")
    return task.get("arguments", {}) if isinstance(task, dict) else {}


def _checked_folder(folder):
    folder = pathlib.Path(folder)
    if not folder.is_dir():
        raise FileNotFoundError(f"No folder {str(folder)!r}: name that of a run, by default runs/ and the program's name")
    return folder


def read_run(folder):
    """The logged values of a run: a row for each step, in order, with a column for each name and `time` (UTC).

    `attrs` holds `folder`, `state` ("finished", "stopped", "failed", "unknown"), `failure`, `settings`, `arguments` (of
    a task of a sweep) and `checkpoints`. Raises FileNotFoundError if the folder has no records of a run.
    """
    folder = _checked_folder(folder)
    if not any((folder / name).exists() for name in _RECORDS):
        raise FileNotFoundError(f"No records of a run in {str(folder)!r}: for a folder of several runs, use read_runs()")
    file = _log_file(folder)
    rows = [{name: _number(value) for name, value in row.items()} for row in (_json_lines(file) if file else []) if "step" in row]
    frame = pandas.DataFrame(rows)
    if "step" not in frame:
        frame = pandas.DataFrame({"step": pandas.Series(dtype="int64")})
    if "time" in frame:
        frame["time"] = pandas.to_datetime(frame["time"], unit="s", utc=True)
    # A row of a step that was logged again after a restart replaces the earlier one, value by value.
    frame = frame.groupby("step").last() if frame["step"].duplicated().any() else frame.set_index("step")
    failure = _json_of(folder / "failure.json")
    frame.attrs = {
        "folder": str(folder),
        "state": _state_of(folder),
        "failure": failure.get("problem") if isinstance(failure, dict) else None,
        "settings": _settings_of(folder),
        "arguments": _arguments_of(folder),
        "checkpoints": sorted(str(manifest.parent) for manifest in folder.glob("checkpoint*/**/manifest.json")),
    }
    return frame.sort_index()


def read_ranks(folder):
    """The last status of each rank: host, memory, times in communication and in waiting for data, and more."""
    frame = pandas.DataFrame(_json_lines(_checked_folder(folder) / "status" / "ranks.jsonl"))
    if "rank" not in frame:
        raise FileNotFoundError(f"No status of ranks in {str(folder)!r}: a run of less than a second writes none")
    return frame.set_index("rank").sort_index()


def read_runs(folder):
    """A row for each run below `folder`, of an array or a sweep: its arguments, its state and its last logged values."""
    folder = _checked_folder(folder)

    def order(path):
        return (0, int(path.name), "") if path.name.isdigit() else (1, 0, path.name)

    rows = {}
    for each in sorted((path for path in folder.iterdir() if path.is_dir() and path.name != "jobs"), key=order):
        try:
            run = read_run(each)
        except FileNotFoundError:
            continue
        values = run.ffill().iloc[-1].drop("time", errors="ignore").to_dict() if len(run) else {}
        last = {"step": run.index[-1]} if len(run) else {}
        rows[each.name] = {**run.attrs["arguments"], "state": run.attrs["state"], **last, **values}
    if not rows:
        raise FileNotFoundError(f"No runs below {str(folder)!r}: name the folder of an array or a sweep")
    return pandas.DataFrame.from_dict(rows, orient="index").rename_axis("run").apply(_numbers_where_all_are)


def _numbers_where_all_are(column):
    """Arguments are texts; a column of numbers can be plotted."""
    try:
        return pandas.to_numeric(column)
    except (TypeError, ValueError):
        return column


def read_study(folder):
    """A row for each run of a study of `hortator scale`, with its measurements, and `efficiency` in relation to the
    smallest size: 1 is ideal. `attrs["plan"]` holds the plan. Raises FileNotFoundError if the folder has no study."""
    folder = _checked_folder(folder)
    plan = _json_of(folder / "plan.json")
    if not isinstance(plan, dict):
        raise FileNotFoundError(f"No scaling study in {str(folder)!r}: name the folder that --out of hortator scale named")
    rows = []
    for file in sorted(folder.glob("point_*_*.json")):
        point = _json_of(file)
        if not isinstance(point, dict):
            continue
        _, ranks, repeat = file.stem.split("_")
        flat = {name: value for name, value in point.items() if not isinstance(value, (dict, list))}
        rows.append({**flat, **(point.get("measure") or {}), "ranks": int(ranks), "repeat": int(repeat)})
    if not rows:
        raise FileNotFoundError(f"The study in {str(folder)!r} has no runs yet")
    frame = pandas.DataFrame(rows).sort_values(["ranks", "repeat"], ignore_index=True)
    is_strong = plan.get("growth") == "strong"  # the time of all updates, which ranks share; else that of one update
    seconds = frame["seconds_per_update"] * (frame["updates"] if is_strong else 1)
    smallest = frame["ranks"].min()
    at_smallest = seconds[frame["ranks"] == smallest].median()
    frame["efficiency"] = at_smallest / seconds * (smallest / frame["ranks"] if is_strong else 1)
    frame.attrs = {"folder": str(folder), "plan": plan}
    return frame
