#!/usr/bin/env bash
# An interrupted download is resumed, not restarted; a wrong file is rejected; an interrupted unpacking is repeated.
set -euo pipefail
# shellcheck source=tests/setup/support.sh
. "$(dirname "$0")/support.sh"
python3 -m pip --version >/dev/null 2>&1 || { echo 'skipped: python3 with pip is not installed'; exit 77; }
grep -q '^ *index' <<<"$(python3 -m pip help 2>/dev/null)" || { echo 'skipped: this pip has no index command'; exit 77; }

# a local package index with one wheel; its log has one line per transfer: the first byte
cat >"$scratch/server.py" <<'PY'
import http.server, os, re, sys
folder = sys.argv[1]
wheel = "hortator_probe-1.0-py3-none-any.whl"

class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.0"

    def do_GET(self):
        if self.path.startswith("/simple/"):
            return self.reply(200, f'<!DOCTYPE html><html><body><a href="/files/{wheel}">{wheel}</a></body></html>'.encode(), "text/html")
        data = open(os.path.join(folder, wheel), "rb").read()
        start = re.match(r"bytes=(\d+)-", self.headers.get("Range") or "")
        start = int(start[1]) if start else 0
        with open(os.path.join(folder, "log"), "a") as log:
            print(start, file=log)
        # while this file exists, the connection is closed after 1 MiB
        broken = os.path.exists(os.path.join(folder, "broken"))
        self.reply(206 if start else 200, data[start:], "application/octet-stream", 1 << 20 if broken else None)

    def reply(self, code, data, kind, limit=None):
        self.send_response(code)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data[:limit])

    def log_message(self, *_):
        pass

server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
with open(os.path.join(folder, "port.part"), "w") as file:
    file.write(str(server.server_port))
os.rename(os.path.join(folder, "port.part"), os.path.join(folder, "port"))
server.serve_forever()
PY
mkdir "$scratch/index"
python3 - "$scratch/index" <<'PY'
import os, sys, zipfile
with zipfile.ZipFile(os.path.join(sys.argv[1], "hortator_probe-1.0-py3-none-any.whl"), "w") as wheel:
    record = "hortator_probe-1.0.dist-info/RECORD"
    data = os.urandom(7 << 20)
    wheel.writestr(record, f"probe/lib/libprobe.so,sha256=x,{len(data)}\n")  # first in the archive on purpose: it must be unpacked last
    wheel.writestr("hortator_probe-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: hortator-probe\nVersion: 1.0\n")
    wheel.writestr("hortator_probe-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
    wheel.writestr("probe/lib/libprobe.so", data)
PY
python3 "$scratch/server.py" "$scratch/index" &
server=$!
trap 'kill "$server" 2>/dev/null || true; rm -rf "$scratch"' EXIT
for _ in $(seq 100); do [ ! -e "$scratch/index/port" ] || break; sleep 0.1; done

wheel=hortator_probe-1.0-py3-none-any.whl
bytes=$(stat -c %s "$scratch/index/$wheel")
digest=$(sha256sum "$scratch/index/$wheel" | cut -d ' ' -f 1)
unset PIP_FIND_LINKS PIP_EXTRA_INDEX_URL PIP_NO_INDEX http_proxy https_proxy
port=$(cat "$scratch/index/port")
export PIP_CONFIG_FILE=/dev/null PIP_INDEX_URL="http://127.0.0.1:$port/simple" PIP_RETRIES=0
target=$scratch/target library=$scratch/target/probe/lib/libprobe.so library_bytes=$((7 << 20)) record=hortator_probe-1.0.dist-info/RECORD
fetch() { python3 "$source_tree/share/setup/wheels.py" "$target" <<<"$bytes ${1:-$digest} $wheel"; }
transfers() { tr '\n' ' ' <"$scratch/index/log"; }

# 1. interrupted in the middle, then the same command
touch "$scratch/index/broken"
run timeout -s INT 4 bash -c "$(declare -f fetch); source_tree=$source_tree target=$target bytes=$bytes digest=$digest wheel=$wheel; fetch"
[ "$code" != 0 ] || wrong 'an interrupted download counts as complete'
expect_absent "$target/$record"
[ -s "$target/$wheel.part" ] || wrong 'the partial download was deleted'
have=$(stat -c %s "$target/$wheel.part")
rm "$scratch/index/broken" "$scratch/index/log"
run fetch
expect_code 0
[ "$(transfers)" = "$have " ] || wrong "resumed at byte $(transfers), expected $have"
[ -s "$target/$record" ] || wrong 'the wheel was not unpacked'
expect_bytes "$library" "$library_bytes"
expect_absent "$target/$wheel" "$target/$wheel.part"

# 2. interrupted while unpacking: there is no record, so it is downloaded and unpacked again
rm "$target/$record"
truncate -s 1000 "$library"
run fetch
expect_code 0
expect_bytes "$library" "$library_bytes"

# 3. another checksum: rejected, removed, nothing unpacked
rm -rf "$target"
run fetch "${digest//[0-9]/0}"
expect_code 1
expect_line 'checksum'
expect_absent "$target/$wheel" "$target/$wheel.part" "$target/$record"

# 4. no connection: an error that says what to do
kill "$server"
wait "$server" 2>/dev/null || true
run fetch
expect_code 1
expect_line 'To resume, run the same command again'
