#!/usr/bin/env bash
# compressed.sh PROGRAM [SEED]: new random files that Python's gzip, gzip and zstd compress in their ways; without zstd, only those of gzip.
set -euo pipefail
# shellcheck source=tests/setup/support.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../../setup/support.sh"
program=$1
seed=${2:-$RANDOM}
echo "seed $seed"
command -v python3 >/dev/null || { echo 'skipped: python3 is not installed'; exit 77; }
cd "$scratch"
mkdir files
python3 - files "$seed" <<'PYTHON'
import gzip, pathlib, random, shutil, subprocess, sys
folder = pathlib.Path(sys.argv[1])
random.seed(int(sys.argv[2]))
def compress(data, level):
    pieces = sorted(random.choices(range(len(data) + 1), k=random.randrange(4)))
    bounds = [0, *pieces, len(data)]
    parts = [data[a:b] for a, b in zip(bounds, bounds[1:])]
    return parts, b"".join(gzip.compress(part, level, mtime=0) for part in parts)
for number, size in enumerate((0, 1, 1000, 300_000, 700_000)):
    alphabet = random.choice((b"ab\n", bytes(range(1, 256)), b"word \n\r"))
    data = bytes(random.choices(alphabet, k=size))
    plain = folder / f"text{number}"
    plain.write_bytes(data)
    for level in (0, 1, 9):
        parts, packed = compress(data, level)
        name = folder / f"text{number}.{level}"
        shutil.copy(plain, name)
        pathlib.Path(f"{name}.gz").write_bytes(packed)
        if shutil.which("zstd"):
            frames = [subprocess.run(["zstd", "-q", "-c", random.choice(("-1", "-9", "-19", "--no-check"))], input=part,
                                     capture_output=True, check=True).stdout for part in parts]
            pathlib.Path(f"{name}.zst").write_bytes(b"".join(frames))
PYTHON
COMPRESSED_FILES=$PWD/files "$program" '[.compressed]' || wrong "the content differs (seed $seed)"
