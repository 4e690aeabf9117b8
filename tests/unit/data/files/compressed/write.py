#!/usr/bin/env python3
"""Writes the compressed files of the tests: Python's gzip and the command zstd. write.py [FOLDER]"""
import gzip
import io
import pathlib
import struct
import subprocess
import sys
import tarfile

folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent)


def zstd(data):
    return subprocess.run(["zstd", "-q", "-c", "--check"], input=data, capture_output=True, check=True).stdout


def members(data, pieces):
    size = (len(data) + pieces - 1) // pieces
    return [data[i:i + size] for i in range(0, len(data), size)]


def tar():
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for sample in range(5):
            for extension, content in (("txt", f"text {sample}\n" * (400 * sample)), ("cls", str(sample))):
                facts = tarfile.TarInfo(f"folder/{sample:04}.{extension}")
                facts.size = len(content)
                archive.addfile(facts, io.BytesIO(content.encode()))
            hidden = tarfile.TarInfo("folder/.hidden")
            archive.addfile(hidden, io.BytesIO(b""))
    return out.getvalue()


lines = "".join(f"line {i} {'x' * (i * 37 % 101)}\n" for i in range(40)).encode() + b"the last line has no end"
rows = "".join(f'{{"x": [{i}, {i + 0.5}], "n": {i}, "s": "row {i}"}}\n{"  " if i % 4 else ""}\n' for i in range(12)).encode()
skippable = struct.pack("<II", 0x184D2A53, 5) + b"notes"

(folder / "lines.txt").write_bytes(lines)
# three members, one of them empty, and the padding that tapes have
(folder / "lines.txt.gz").write_bytes(b"".join(gzip.compress(part, mtime=0) for part in members(lines, 2) + [b""]) + bytes(17))
(folder / "lines.txt.zst").write_bytes(skippable + b"".join(zstd(part) for part in members(lines, 2)) + skippable)
(folder / "rows.jsonl").write_bytes(rows)
(folder / "rows.jsonl.gz").write_bytes(gzip.compress(rows, mtime=0))
(folder / "rows.jsonl.zst").write_bytes(zstd(rows))
(folder / "shard.tar").write_bytes(tar())
(folder / "shard.tar.gz").write_bytes(gzip.compress(tar(), mtime=0))
(folder / "shard.tar.zst").write_bytes(zstd(tar()))
# 16 MiB of one line
(folder / "bomb.gz").write_bytes(gzip.compress(bytes(16 << 20), mtime=0))
(folder / "bomb.zst").write_bytes(zstd(bytes(16 << 20)))
