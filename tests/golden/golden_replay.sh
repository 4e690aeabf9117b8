#!/usr/bin/env bash
# golden_replay.sh PROGRAM FOLDER: the program replays files with other names, counts differences, and rejects unknown formats.
set -euo pipefail
program=$1 folder=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

fail() {
  echo "failed: $1" >&2
  cat output >&2
  exit 1
}
# replays CODE LAST_LINE FILE...: replays the files, which must give this exit code and last line
replays() {
  local code=0
  "$program" "${@:3}" >output 2>&1 || code=$?
  [ "$code" -eq "$1" ] || fail "expected exit code $1, got $code"
  [ "$(tail -n 1 output)" = "$2" ] || fail "expected the last line: $2"
}

cp "$folder/collectives.json" one.json
sed 's/"value":"yes","out":1}/"value":"yes","out":0}/' "$folder/environment.json" >two.json
replays 1 "139 passed, 1 failed (7 on purpose)" one.json two.json
grep -q '^one.json: 3 cases on purpose: only_vectors_are_joined$' output || fail "the rules are not printed"
grep -q '^two.json: case 12: the meaning is 1, Accelerate has 0$' output || fail "the difference is not printed"
[ "$(ls)" = $'one.json\noutput\ntwo.json' ] || fail "files are left behind: $(ls)"
cp "$folder/environment.json" two.json
replays 0 "28 passed, 0 failed (2 on purpose)" two.json

# A case that cannot be replayed does not affect the others.
sed 's/^{"id":3,"op":"gather","world":2,/{"id":3,"op":"gather",/; s/^{"id":2,"op":"gather",/{"id":2,"op":"scatter",/' one.json >five.json
replays 1 "110 passed, 2 failed (5 on purpose)" five.json
grep -q '^five.json: case 3: the number of ranks is missing$' output || fail "a case without a number of ranks is not reported"
grep -q "^five.json: case 2: .*The case's op: expected one of gather, .*, got 'scatter'" output || fail "the known values are not printed"

replays 2 "golden_replay: nowhere.json: Cannot read the file 'nowhere.json'" nowhere.json
echo "{" >three.json
replays 2 "$("$program" three.json 2>&1 || true)" three.json
grep -q "'three.json' is not valid JSON" output || fail "invalid JSON is not reported"
echo '{"cases": [{"id": 1}]}' >four.json
replays 2 "$("$program" four.json 2>&1 || true)" four.json
grep -q 'of an unknown format (known: .*collectives' output || fail "the known formats are not printed"
replays 2 "usage: golden_replay FILE.json..."
