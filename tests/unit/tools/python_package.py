"""What the package of share/python reads, compared with what the test has written: python_package.py FOLDER"""

import json
import pathlib
import sys

import numpy
import pandas

import hortator


def fails(kind, text, call, *arguments, **options):
    try:
        call(*arguments, **options)
    except kind as error:
        assert text in str(error), f"expected {text!r} in {error}"
        return
    raise AssertionError(f"expected {kind.__name__}: {text}")


def check_runs(folder):
    run = hortator.read_run(folder / "runs/a")
    assert list(run.index) == list(range(40)), run.index
    rows = [json.loads(line) for line in (next((folder / "runs/a/logs").glob("*.jsonl"))).read_text().splitlines()]
    assert run["loss"].tolist() == [row["loss"] for row in rows]
    assert run["time"].is_monotonic_increasing and str(run["time"].dt.tz) == "UTC"
    assert run.attrs["state"] == "finished" and run.attrs["failure"] is None
    assert [pathlib.Path(name).name for name in run.attrs["checkpoints"]] == ["checkpoint"]
    ranks = hortator.read_ranks(folder / "runs/a")
    assert list(ranks.index) == [0, 1] and (ranks["world"] == 2).all()

    # an incomplete row, numbers that JSON does not have, and a step that a restart logs again
    logs = folder / "made/logs"
    logs.mkdir(parents=True)
    (logs / "m.jsonl").write_text('{"step":0,"time":1,"loss":"NaN"}\n{"step":1,"time":2,"loss":3}\n{"step":1,"time":4,"loss":2.5}\n{"step":2,"ti')
    (folder / "made/failure.json").write_text('{"problem": "broken"}')
    made = hortator.read_run(folder / "made")
    assert list(made.index) == [0, 1] and numpy.isnan(made["loss"][0]) and made["loss"][1] == 2.5
    assert made.attrs["state"] == "failed" and made.attrs["failure"] == "broken"
    (folder / "nothing").mkdir()
    fails(FileNotFoundError, "No records of a run", hortator.read_run, folder / "nothing")
    fails(FileNotFoundError, "No folder", hortator.read_run, folder / "absent")

    runs = hortator.read_runs(folder / "runs/sweep")
    assert list(runs.index) == ["0", "1"] and runs["--lr"].tolist() == [0.1, 0.2]
    assert runs["step"].tolist() == [9, 10] and (runs["state"] == "finished").all() and "loss" in runs
    fails(FileNotFoundError, "No runs below", hortator.read_runs, folder / "nothing")


def check_study(folder):
    study = hortator.read_study(folder / "runs/study")
    assert study["ranks"].tolist() == [1, 1, 2, 2] and study["repeat"].tolist() == [1, 2, 1, 2]
    assert abs(study[study["ranks"] == 1]["efficiency"].median() - 1) < 0.2
    seconds = study["seconds_per_update"]
    expected = seconds[:2].median() / seconds
    assert numpy.allclose(study["efficiency"], expected)
    assert study.attrs["plan"]["ranks"] == [1, 2]
    # strong scaling: the same work on more ranks
    strong = folder / "strong"
    strong.mkdir()
    plan = dict(study.attrs["plan"], growth="strong")
    (strong / "plan.json").write_text(json.dumps(plan))
    for ranks, seconds in ((1, 0.4), (2, 0.25)):
        point = json.loads((folder / f"runs/study/point_{ranks}_1.json").read_text())
        point["measure"].update(seconds_per_update=seconds, updates=10)
        (strong / f"point_{ranks}_1.json").write_text(json.dumps(point))
    assert numpy.allclose(hortator.read_study(strong)["efficiency"], [1, 0.8])
    fails(FileNotFoundError, "No scaling study", hortator.read_study, folder / "nothing")


def check_checkpoint(folder):
    written = folder / "for_h5py/expected"
    try:
        import torch
    except ImportError:
        torch = None
    for name in ("one", "several"):
        checkpoint = folder / "for_h5py" / name
        manifest = hortator.read_manifest(checkpoint)
        wider = set()
        for line in (written / "index").read_text().splitlines():
            number, tensor, kind, shape = line.split("\t")
            is_complex = kind.startswith("complex")
            values = numpy.fromfile(written / number, dtype="complex128" if is_complex else "float64").reshape([int(size) for size in shape.split(",") if size])
            prefix, _, last = tensor.rpartition("/")
            if kind == "wider":
                wider.add(tensor)
            if prefix != "types":  # which has types of 8 bits
                found = hortator.load_checkpoint(checkpoint, prefix)[last]
                assert found.dtype == numpy.dtype("float32" if kind == "wider" else kind), tensor
                assert numpy.array_equal(found.astype(values.dtype), values), tensor
            if kind == "wider":
                continue
            if torch is not None:
                of_torch = hortator.load_checkpoint(checkpoint, prefix, torch=True)[last]
                assert numpy.array_equal(of_torch.to(torch.complex128 if is_complex else torch.float64).numpy(), values), tensor
        assert wider and manifest["world_size"] == 2 and manifest["values"], manifest["values"]
        if torch is not None:
            for tensor in wider:
                values = numpy.fromfile(written / number_of(written, tensor), dtype="float64")
                found = hortator.load_checkpoint(checkpoint, "types", torch=True)[tensor.split("/")[1]]
                assert numpy.array_equal(found.to(torch.float64).numpy().ravel(), values), tensor
    if torch is None:
        fails(hortator.checkpoint.CheckpointError, "which numpy does not have: use load_checkpoint(..., torch=True)", hortator.load_checkpoint, folder / "for_h5py/one", "types")
    fails(hortator.checkpoint.CheckpointError, "No tensor below 'models/7'", hortator.load_checkpoint, folder / "for_h5py/one", "models/7")
    fails(hortator.checkpoint.CheckpointError, "it holds the checkpoints one, several", hortator.load_checkpoint, folder / "for_h5py")
    state = folder / "for_h5py/one/state.h5"
    state.write_bytes(state.read_bytes()[:-1])
    fails(hortator.checkpoint.CheckpointError, "expected", hortator.load_checkpoint, folder / "for_h5py/one")
    manifest = folder / "for_h5py/several/manifest.json"
    manifest.write_text(manifest.read_text().replace('"state-0.h5"', '"../../state.h5"'))
    fails(hortator.checkpoint.CheckpointError, "is not the name of a file", hortator.load_checkpoint, folder / "for_h5py/several")


def number_of(written, tensor):
    for line in (written / "index").read_text().splitlines():
        number, name, _, _ = line.split("\t")
        if name == tensor:
            return number
    raise AssertionError(tensor)


def check_plan():
    fails(RuntimeError, "No program", hortator.plan, ["./absent-program"], ranks=2, memory="1GiB")


def main():
    folder = pathlib.Path(sys.argv[1])
    check_runs(folder)
    check_study(folder)
    check_checkpoint(folder)
    check_plan()
    print(f"read with pandas {pandas.__version__} from {pathlib.Path(hortator.__file__).parent}")


main()
