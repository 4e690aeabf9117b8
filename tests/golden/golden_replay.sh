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
replays 0 "112 passed, 0 failed (11 on purpose)" one.json
grep -q '^one.json: [0-9]* cases on purpose: ' said || fail "the rules are not named"
[ "$(ls)" = $'one.json\nsaid' ] || fail "files are left: $(ls)"

cp "$folder/environment.json" two.json
replays 0 "28 passed, 0 failed (2 on purpose)" two.json

sed 's/"out":1}/"out":0}/' two.json >three.json
replays 1 "139 passed, 1 failed (13 on purpose)" one.json three.json
grep -q '^three.json: case 12: the meaning is 1, the reference has 0$' said || fail "the difference is not named"

replays 2 "golden_replay: nowhere.json: there is no file nowhere.json that can be read" nowhere.json
echo "{" >four.json
replays 2 "$("$program" four.json 2>&1 || true)" four.json
grep -q 'four.json is not JSON' said || fail "what is no JSON is not named"
echo '{"cases": [{"id": 1}]}' >five.json
replays 2 "$("$program" five.json 2>&1 || true)" five.json
grep -q 'of no format that can be replayed (known are .*collectives' said || fail "what is known is not named"
replays 2 "usage: golden_replay FILE.json..."
