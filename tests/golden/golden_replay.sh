#!/usr/bin/env bash
# golden_replay.sh PROGRAM FOLDER: the program replays files under other names, counts what differs, and refuses what it does not know.
set -euo pipefail
program=$1 folder=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

fail() {
  echo "failed: $1" >&2
  cat said >&2
  exit 1
}
# replays CODE LAST_LINE FILE...: the exit code and the last line.
replays() {
  local code=0
  "$program" "${@:3}" >said 2>&1 || code=$?
  [ "$code" -eq "$1" ] || fail "the exit code is $code in place of $1"
  [ "$(tail -n 1 said)" = "$2" ] || fail "the last line is not: $2"
}

cp "$folder/collectives.json" one.json
sed 's/"value":"yes","out":1}/"value":"yes","out":0}/' "$folder/environment.json" >two.json
replays 1 "139 passed, 1 failed (7 on purpose)" one.json two.json
grep -q '^one.json: 3 cases on purpose: only_vectors_are_joined$' said || fail "the rules are not named"
grep -q '^two.json: case 12: the meaning is 1, the reference has 0$' said || fail "the difference is not named"
[ "$(ls)" = $'one.json\nsaid\ntwo.json' ] || fail "files are left: $(ls)"
cp "$folder/environment.json" two.json
replays 0 "28 passed, 0 failed (2 on purpose)" two.json

# A case that cannot be replayed costs no other.
sed 's/^{"id":3,"op":"gather","world":2,/{"id":3,"op":"gather",/; s/^{"id":2,"op":"gather",/{"id":2,"op":"scatter",/' one.json >five.json
replays 1 "110 passed, 2 failed (5 on purpose)" five.json
grep -q '^five.json: case 3: it does not say how many ranks it needs$' said || fail "a case without ranks is not named"
grep -q "^five.json: case 2: .*the case's op is 'scatter', which cannot be replayed (known are gather" said || fail "what is known is not named"

replays 2 "golden_replay: nowhere.json: there is no file nowhere.json that can be read" nowhere.json
echo "{" >three.json
replays 2 "$("$program" three.json 2>&1 || true)" three.json
grep -q 'three.json is not JSON' said || fail "what is no JSON is not named"
echo '{"cases": [{"id": 1}]}' >four.json
replays 2 "$("$program" four.json 2>&1 || true)" four.json
grep -q 'of no format that can be replayed (known are .*collectives' said || fail "what is known is not named"
replays 2 "usage: golden_replay FILE.json..."
