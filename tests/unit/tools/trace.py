"""Checks a trace of all ranks: trace.py FILE RANKS MICROSECONDS. With --shift FROM TO, writes traces as hosts with other clocks would."""

import json
import pathlib
import sys


def shift(source, target):
    """Ranks 2 and 3 are on another host, whose clock is 1.7 s behind and gains 40 us a second."""
    for file in sorted(pathlib.Path(source).glob("profile_*.json")):
        trace = json.loads(file.read_text())
        own = trace["hortator"]
        if own["rank"] >= 2:
            own["host"] = "other"
            begin = own["barriers"][0][0] / 1000 - trace["baseTimeNanoseconds"] / 1000

            def moved(time):
                return time - 1.7e6 + 40e-6 * (time - begin)

            for event in trace["traceEvents"]:
                if "ts" in event:
                    event["ts"] = moved(float(event["ts"]))
            base = trace["baseTimeNanoseconds"]
            own["barriers"] = [[int((moved((each - base) / 1000)) * 1000) + base for each in barrier] for barrier in own["barriers"]]
        (pathlib.Path(target) / file.name).write_text(json.dumps(trace))


def check(file, ranks, bound):
    trace = json.loads(pathlib.Path(file).read_text())
    events = trace["traceEvents"]
    names = {event["args"]["name"].split(":")[0].split(" (")[0] for event in events if event.get("name") == "process_name"}
    assert {f"rank {rank}" for rank in range(ranks)} <= names, names
    begun, spans = {}, {}
    for event in events:
        if event.get("cat") != "collective":
            continue
        if event["ph"] == "b":
            begun[event["id"]] = event
            continue
        begin = begun[event["id"]]
        facts = begin["args"]
        assert facts["bytes"] >= 0 and facts["group size"] == ranks and begin["name"], begin
        spans.setdefault((facts["group"], facts["sequence"]), []).append((begin["ts"], event["ts"], facts))
    of_all = {key: all_ranks for key, all_ranks in spans.items() if len(all_ranks) == ranks}
    assert len(of_all) >= 8, len(of_all)
    worst = max(max(span[0] for span in each) - min(span[1] for span in each) for each in of_all.values())
    late = set()
    for each in of_all.values():
        last = [span[2]["entered last"] for span in each]
        assert len(set(last)) == 1 and each[0][2]["ranks"] == list(range(ranks))
        assert min(abs(span[2]["entered before the last (us)"]) for span in each) < 1e-3
        late.add(last[0])
    assert late == set(range(ranks)), f"the ranks take turns to be late: {late}"
    assert any(span[2]["bytes"] >= 256 * 256 * 4 for each in of_all.values() for span in each), "the gradients"
    flows = [event["id"] for event in events if event.get("ph") == "s"]
    assert len(flows) == len(set(flows)), "two arrows have one number"
    print(f"{file}: {len(events)} events, {len(of_all)} collectives of {ranks} ranks overlap within {max(worst, 0):.1f} us")
    assert worst <= bound, worst


if sys.argv[1] == "--shift":
    shift(sys.argv[2], sys.argv[3])
else:
    check(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]))
