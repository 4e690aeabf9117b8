#!/usr/bin/env bash
# page.sh HORTATOR SLEEPING: the page of `hortator watch --html`: one file, without links to others, of at most 3 MB, made in at most 5 s of a
# million logged steps and ten thousand ranks. In Chromium, where there is one, it shows the figures at two widths without an error and without
# scrolling sideways (skipped with a reason otherwise). KEEP=FOLDER keeps its images there.
set -u
hortator=$1 sleeping=$2
keep=${KEEP:-}
# shellcheck source=tests/unit/tools/support.sh
. "$(dirname "$0")/support.sh"

# what is in a page
page_is_whole() {
  [ -s "$1" ] || wrong "$1 is missing"
  [ "$(stat -c %s "$1")" -le 3000000 ] || wrong "$1 has $(stat -c %s "$1") bytes"
  if grep -qE '(src|href)=|https?://|@import|url\(' "$1"; then wrong "$1 needs other files"; fi
  [ "$(grep -c '</script>' "$1")" = 2 ] || wrong "a text of the run ends the script in $1"
}

# a run of two ranks, and one that has failed, with a text that would end the script
HORTATOR_RUN_DIR=$work/runs/a run launch -n 2 "$sleeping" weak 60 30; code_is 0
run watch runs/a --html a.html --once; code_is 0
page_is_whole a.html
grep -q '"state":"finished"' a.html || wrong 'the state is missing'
grep -q '"loss":{"x":\[' a.html || wrong 'the loss is missing'
grep -q '"is_live":false' a.html || wrong 'it has ended'
cp -r runs/a runs/b; rm runs/b/outcome.json
echo '{"rank": 1, "host": "n1", "problem": "</script><script>alert(1)</script> <!-- & \" \u00e9"}' >runs/b/failure.json
run watch runs/b --html b.html --once; code_is 1
page_is_whole b.html
run watch runs/a runs/b --html c.html --once; code_is 2; err_has '--html: expected one run, got 2'
run watch runs/a --html "$work/absent" --once; code_is 0
mkdir folder.html
run watch runs/a --html folder.html --once; code_is 1; err_has 'Cannot write'

# a million steps and ten thousand ranks
mkdir -p runs/large/logs runs/large/status
seq 1 1000000 | awk '{ printf "{\"step\":%d,\"time\":%.3f,\"loss\":%.6f,\"lr\":%.8f}\n", $1, 1790000000 + $1 * 0.05, 2 + 8 / sqrt($1) + 0.1 * sin($1), 0.001 }' >runs/large/logs/metrics.jsonl
row=$(head -n 1 runs/a/status/ranks.jsonl)
awk -v row="$row" 'BEGIN {
  for (rank = 0; rank < 10000; ++rank) {
    line = row; sub(/ +$/, "", line)
    sub(/"rank":0/, "\"rank\":" rank, line); sub(/"world":2/, "\"world\":10000", line); sub(/"host":"[^"]*"/, "\"host\":\"node" int(rank / 8) "\"", line)
    sub(/"communication":[0-9.e+-]*/, "\"communication\":" (rank == 4711 ? 0.02 : 0.3 + 0.0001 * (rank % 977)), line); sub(/"rows":"[^"]*",?/, "", line)
    printf "%-2047s\n", line
  }
}' >runs/large/status/ranks.jsonl
spend watch runs/large --html large.html --once; code_is 0
echo "a million steps and ten thousand ranks: $spent ms, $(stat -c %s large.html) bytes"
[ "$spent" -le 5000 ] || wrong "the page took $spent ms"
page_is_whole large.html
grep -q '"rank":4711' large.html || wrong 'the slowest rank is missing'

# it follows a running one, and ends with it
HORTATOR_RUN_DIR=$work/runs/d timeout 60 "$hortator" launch -n 1 "$sleeping" weak 100 30 >log 2>&1 &
job=$!
for _ in $(seq 100); do [ -s runs/d/status/ranks.jsonl ] && break; sleep 0.1; done
timeout 60 "$hortator" watch runs/d --html d.html >out 2>err &
follower=$!
for _ in $(seq 100); do [ -s d.html ] && break; sleep 0.1; done
grep -q '"is_live":true' d.html || wrong 'it was live'
wait "$job"
wait "$follower" || wrong "it failed: $(cat out err)"
grep -q '"state":"finished"' d.html || wrong 'the last page is not of the end'

browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome) || browser=''
if [ -z "$browser" ]; then
  echo 'skipped: there is no Chromium (apt-get install chromium)'
else
  # seen NAME WIDTH ARGUMENT...: the page's text in $out, an image, and no error
  seen() {
    local name=$1 width=$2
    shift 2
    call="chromium $name $width $*" code=0
    set -- "$browser" --headless --no-sandbox --disable-gpu --hide-scrollbars --user-data-dir="$work/profile" --window-size="$width",1400 --virtual-time-budget=3000 "$@"
    timeout 60 "$@" --enable-logging=stderr --v=0 --dump-dom "file://$work/$name.html" >out 2>err
    out=$(<out)
    err=$(grep -E 'CONSOLE' err)
    [ -z "$err" ] || wrong "the page reports errors"
    out_has 'data-ready="yes"'
    timeout 60 "$@" --screenshot="$work/$name-$width.png" "file://$work/$name.html" >/dev/null 2>&1
    [ -s "$name-$width.png" ] || wrong 'there is no image'
    if [ -n "$keep" ]; then mkdir -p "$keep" && cp "$name-$width.png" "$keep/"; fi
  }
  for width in 1280 420; do
    seen a "$width"; out_has 'finished'; out_has 'memory of a rank'; out_has '<canvas'
    seen b "$width"; out_has 'failed'; out_has 'alert(1)'
    seen large "$width"; out_has '10000 ranks on 1250 nodes'; out_has 'node588'
  done
  if [ -n "$keep" ]; then
    "$browser" --headless --no-sandbox --disable-gpu --hide-scrollbars --user-data-dir="$work/profile" --window-size=1280,1400 --force-dark-mode --blink-settings=preferredColorScheme=0 \
      --virtual-time-budget=3000 --screenshot="$keep/large-dark.png" "file://$work/large.html" >/dev/null 2>&1
  fi
fi

[ "$failures" = 0 ] || { echo "$failures wrong"; exit 1; }
