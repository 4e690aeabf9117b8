#!/usr/bin/env python3
"""adios2-streams.py [--mib SIZE] [--steps N]: what one step costs between a running solver and a trainer, two processes on this machine.

The solver publishes an array a step; the trainer reads it and adds it up. Compared are a stream of ADIOS2 (SST), a file a step by ADIOS2 (BP5),
a file a step by NumPy with a rename, and memory that both processes map. Needs numpy and adios2 (pip install adios2). Prints, for each of them, the mean time
from one arrival at the trainer to the next, when both sides do nothing else. A file of BP5 has no limit on
how far the solver is ahead; all others let it be one or two steps ahead.
"""
import argparse
import multiprocessing
import multiprocessing.shared_memory
import os
import pathlib
import tempfile
import time

import adios2
import numpy


def array_of(step, elements):
    return numpy.full(elements, step, dtype=numpy.float64)


def adios2_solver(engine, name, elements, steps):
    io = adios2.Adios().declare_io("solver")
    io.set_engine(engine)
    io.set_parameters({"QueueLimit": "1", "QueueFullPolicy": "Block", "RendezvousReaderCount": "1"} if engine == "SST" else {})
    field = io.define_variable("field", array_of(0, elements), [elements], [0], [elements])
    writer = io.open(name, adios2.bindings.Mode.Write)
    for step in range(steps):
        writer.begin_step()
        writer.put(field, array_of(step, elements))
        writer.end_step()
    writer.close()


def adios2_trainer(engine, name, elements, steps):
    io = adios2.Adios().declare_io("trainer")
    io.set_engine(engine)
    io.set_parameters({"OpenTimeoutSecs": "30"})
    index = pathlib.Path(name) / "md.idx"
    while engine == "BP5" and not (index.exists() and index.stat().st_size > 64):  # opened earlier, it is an error
        time.sleep(0)
    reader = io.open(name, adios2.bindings.Mode.Read)
    result = numpy.empty(elements)
    for step in range(steps):
        while reader.begin_step(adios2.bindings.StepMode.Read, 10.0) == adios2.bindings.StepStatus.NotReady:
            pass
        reader.get(io.inquire_variable("field"), result)
        reader.end_step()
        yield step, result
    reader.close()


def file_solver(folder, _, elements, steps):
    for step in range(steps):
        while step > 1 and (pathlib.Path(folder) / f"{step - 2}.npy").exists():
            time.sleep(0)
        numpy.save(pathlib.Path(folder) / "part.npy", array_of(step, elements))
        os.rename(pathlib.Path(folder) / "part.npy", pathlib.Path(folder) / f"{step}.npy")


def file_trainer(folder, _, elements, steps):
    for step in range(steps):
        path = pathlib.Path(folder) / f"{step}.npy"
        while not path.exists():
            time.sleep(0)
        result = numpy.load(path)
        path.unlink()
        yield step, result


def shared(name, elements):
    memory = multiprocessing.shared_memory.SharedMemory(name=name)
    numbers = numpy.ndarray((elements + 2,), dtype=numpy.float64, buffer=memory.buf)
    return memory, numbers[:2], numbers[2:]


def memory_solver(name, _, elements, steps):
    memory, counters, field = shared(name, elements)
    for step in range(steps):
        while counters[0] - counters[1] > 0:
            time.sleep(0)
        field[:] = array_of(step, elements)
        counters[0] += 1
    del counters, field
    memory.close()


def memory_trainer(name, _, elements, steps):
    memory, counters, field = shared(name, elements)
    for step in range(steps):
        while counters[0] <= step:
            time.sleep(0)
        yield step, field.copy()
        counters[1] += 1
    del counters, field
    memory.close()


def seconds_of_steps(solver, trainer, first, second, elements, steps):
    process = multiprocessing.Process(target=solver, args=(first, second, elements, steps))
    process.start()
    arrivals = []
    for step, field in trainer(first, second, elements, steps):
        assert field[0] == step and field.sum() == step * elements, "the trainer has read something else"
        arrivals.append(time.perf_counter())
    process.join()
    assert process.exitcode == 0
    return (arrivals[-1] - arrivals[0]) / (steps - 1)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mib", type=float, default=8, help="size of a step's array")
    parser.add_argument("--steps", type=int, default=60)
    options = parser.parse_args()
    elements = int(options.mib * 2**20) // 8
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        block = multiprocessing.shared_memory.SharedMemory(create=True, size=8 * (elements + 2))
        block.buf[:16] = bytes(16)
        os.mkdir("files")
        for what, arguments in (("shared memory", (memory_solver, memory_trainer, block.name, None)),
                                ("a file a step", (file_solver, file_trainer, "files", None)),
                                ("ADIOS2, BP5 file", (adios2_solver, adios2_trainer, "BP5", "steps.bp")),
                                ("ADIOS2, SST stream", (adios2_solver, adios2_trainer, "SST", "stream"))):
            seconds = seconds_of_steps(*arguments, elements, options.steps)
            print(f"{what:20} {seconds * 1e3:8.2f} ms a step", flush=True)
        block.close()
        block.unlink()


if __name__ == "__main__":
    main()
