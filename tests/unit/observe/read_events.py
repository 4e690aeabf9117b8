#!/usr/bin/env python3
"""Reads the event files of a run of tracked.cpp without TensorBoard: read_events.py LOGS.

Strict: every record's checksums, every field known, every number once. Restarts purge what came after them, as
TensorBoard does. Needs only Python's standard library."""
import csv
import json
import os
import struct
import sys

TABLE = []
for byte in range(256):
    for _ in range(8):
        byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
    TABLE.append(byte)


def masked_crc(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ TABLE[(crc ^ byte) & 0xFF]
    crc ^= 0xFFFFFFFF
    return (crc >> 15 | crc << 17 & 0xFFFFFFFF) + 0xA282EAD8 & 0xFFFFFFFF


def records(data):
    """length, its checksum, the record, its checksum"""
    at = 0
    while at < len(data):
        head = data[at:at + 8]
        (length,) = struct.unpack("<Q", head)
        record = data[at + 12:at + 12 + length]
        sums = struct.unpack("<I", data[at + 8:at + 12]) + struct.unpack("<I", data[at + 12 + length:at + 16 + length])
        assert sums == (masked_crc(head), masked_crc(record)), f"a checksum is wrong at byte {at}"
        yield record
        at += 16 + length


def varint(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 0x7F) << shift
        shift += 7
        at += 1
        if data[at - 1] < 0x80:
            return value, at


def message(data, names):
    """The fields of a protobuf message by name: lists, since each may be repeated."""
    fields = {name: [] for name in names.values()}
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        assert key >> 3 in names, f"field {key >> 3} is none of {names}"
        if key & 7 == 0:
            value, at = varint(data, at)
        elif key & 7 == 1:
            value, at = struct.unpack("<d", data[at:at + 8])[0], at + 8
        elif key & 7 == 5:
            value, at = struct.unpack("<f", data[at:at + 4])[0], at + 4
        else:
            assert key & 7 == 2, f"wire type {key & 7}"
            length, at = varint(data, at)
            value, at = data[at:at + length], at + length
            assert len(value) == length, "a field is cut off"
        fields[names[key >> 3]].append(value)
    return fields


EVENT = {1: "time", 2: "step", 3: "version", 5: "summary", 7: "session"}
VALUE = {1: "tag", 2: "number", 4: "image", 5: "histogram", 8: "tensor", 9: "metadata"}
HISTOGRAM = {1: "min", 2: "max", 3: "count", 4: "sum", 5: "squares", 6: "limits", 7: "counts"}
IMAGE = {1: "height", 2: "width", 3: "colors", 4: "png"}
TENSOR = {1: "type", 2: "shape", 8: "words"}


def read_folder(folder):
    """[step, tag, kind, content] of all that was not purged, in the order in which it was logged."""
    entries = []
    for name in sorted(name for name in os.listdir(folder) if "tfevents" in name):
        with open(os.path.join(folder, name), "rb") as file:
            for i, record in enumerate(records(file.read())):
                event = message(record, EVENT)
                step = (event["step"] or [0])[0]
                assert event["time"][0] > 1.7e9
                assert (i == 0) == (event["version"] == [b"brain.Event:2"]), "the version comes first, and once"
                if event["session"]:
                    assert message(event["session"][0], {1: "status"})["status"] == [1]
                    entries = [entry for entry in entries if entry[0] < step]
                for summary in event["summary"]:
                    for value in message(summary, {1: "values"})["values"]:
                        fields = message(value, VALUE)
                        kinds = [kind for kind in ("number", "image", "histogram", "tensor") if fields[kind]] or ["metadata"]
                        assert len(kinds) == 1, kinds
                        entries.append([step, fields["tag"][0].decode(), kinds[0], fields[kinds[0]][0]])
    return entries


def check(logs):
    entries = read_folder(logs + "/run")

    def of(tag, kind):
        return [(entry[0], entry[3]) for entry in entries if entry[1] == tag and entry[2] == kind]

    for name, truth in (("loss", lambda step: 1 / (step + 1)), ("rate", float)):
        points = of(name, "number")
        assert [step for step, _ in points] == list(range(1000)), f"{name}: {len(points)} points"
        assert all(abs(value - truth(step)) < 1e-6 * (1 + abs(value)) for step, value in points), name
    assert len([entry for entry in entries if entry[2] == "number"]) == 2000
    texts = of("words/text_summary", "tensor")
    assert [step for step, _ in texts] == list(range(0, 1000, 50)), texts
    assert message(texts[3][1], TENSOR)["words"] == [b"at 150"]
    ((_, content),) = of("numbers", "histogram")
    histogram = message(content, HISTOGRAM)
    assert histogram["count"] == [100] and histogram["max"] == [99], histogram
    counts = histogram["counts"][0]
    assert sum(struct.unpack(f"<{len(counts) // 8}d", counts)) == 100
    if os.environ.get("HORTATOR_TEST_PNG") != "0":  # a build without libpng writes none
        ((_, content),) = of("image", "image") or of("image/0", "image")
        image = message(content, IMAGE)
        assert (image["width"], image["height"], image["png"][0][1:4]) == ([6], [4], b"PNG"), image
    assert of("_hparams_/experiment", "metadata") and of("_hparams_/session_start_info", "metadata")

    with open(logs + "/run.jsonl") as rows:
        assert [json.loads(row)["step"] for row in rows] == list(range(1000))
    with open(logs + "/run.csv") as file:
        table = list(csv.DictReader(file))
    assert [int(row["step"]) for row in table] == list(range(1000))
    assert float(table[999]["loss"]) == 0.001


if __name__ == "__main__":
    check(sys.argv[1])
