#!/usr/bin/env bash
# page.sh HORTATOR SLEEPING: the pages of `hortator watch --html` and `scale report --html`: one file, without links to others, of at most 3 MB, made
# in at most 5 s of a million logged steps and ten thousand ranks. In Chromium, where there is one, they show the figures at two widths without an error,
# curves can be zoomed into, and they scroll at 60 frames a second (skipped with a reason otherwise). KEEP=FOLDER keeps images there.
set -u
hortator=$1 sleeping=$2
keep=${KEEP:-}
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/unit/tools/support.sh
. "$here/support.sh"

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

# the page of a study
run scale weak --ranks 1,2 --repeats 2 --out runs/study -- "$sleeping" weak 30 10; code_is 0
run scale report runs/study --html study.html; code_is 0; out_has 'page: study.html'; out_has 'efficiency'
page_is_whole study.html
grep -q '"name":"Efficiency"' study.html || wrong 'the efficiency is missing'
grep -q 'overlaps with compute' study.html || wrong 'the model is missing'
run scale report runs/study --html absent/study.html; code_is 1; err_has 'cannot be written'
run scale report --html study.html; code_is 2; err_has 'The folder of a study is missing'
run scale report runs/study --htm study.html; code_is 2; err_has '--html'

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
    seen study "$width"; out_has 'weak scaling'; out_has '<canvas'; out_has 'measured'
    seen a "$width"; out_has 'finished'; out_has 'memory of a rank'; out_has '<canvas'
    seen b "$width"; out_has 'failed'; out_has 'alert(1)'
    seen large "$width"; out_has '10000 ranks on 1250 nodes'; out_has 'node588'
  done
  # A drag over a curve zooms: the address keeps the range of steps.
  sed 's|</body>|<script>const canvas = document.querySelector("canvas"), box = canvas.getBoundingClientRect(); for (const [kind, x] of [["pointermove", 100], ["pointerdown", 100], ["pointermove", 200], ["pointerup", 200]]) { const event = new PointerEvent(kind, { clientX: box.left + x, clientY: box.top + 50 }); canvas.dispatchEvent(event); } document.body.dataset.zoom = location.hash;</script></body>|' large.html >zoomed.html
  seen zoomed 1280
  zoom=$(grep -oE 'data-zoom="#[0-9.]+,[0-9.]+"' <<<"$out")
  awk -F'[#,"]' '{ exit !($3 > 0 && $4 > $3 && $4 < 900000) }' <<<"$zoom" || wrong "a drag does not zoom: $zoom"
  # Other tests may take the processors for a while.
  for page in large study; do
    for try in 1 2 3; do python3 "$here/scrolled.py" "$browser" "$page.html" 57 && break; done
    [ "$try" -lt 3 ] || python3 "$here/scrolled.py" "$browser" "$page.html" 57 || wrong "$page.html does not scroll at 60 frames a second"
  done
  if [ -n "$keep" ]; then
    "$browser" --headless --no-sandbox --disable-gpu --hide-scrollbars --user-data-dir="$work/profile" --window-size=1280,1400 --force-dark-mode --blink-settings=preferredColorScheme=0 \
      --virtual-time-budget=3000 --screenshot="$keep/large-dark.png" "file://$work/large.html" >/dev/null 2>&1
  fi
fi

[ "$failures" = 0 ] || { echo "$failures wrong"; exit 1; }
