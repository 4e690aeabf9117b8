#!/usr/bin/env bash
# metrics.sh HORTATOR SLEEPING DASHBOARD: metrics.prom of a running job and of `hortator watch --metrics`: every line is of the format, the
# figures are those of watch, and the Grafana dashboard asks for metrics that exist. With Debian's prometheus and prometheus-node-exporter,
# promtool finds no fault, and what Prometheus scrapes on loopback is what the run has logged; each of these is skipped with a reason if missing.
set -u
hortator=$1 sleeping=$2 dashboard=$3
# shellcheck source=tests/unit/tools/support.sh
. "$(dirname "$0")/support.sh"

# valid FILE: each line is a comment, or a metric with labels and a number; a metric's lines are together
valid() {
  local bad
  bad=$(grep -vE '^(# (HELP|TYPE) hortator_[a-z_]+ .+|# EOF|hortator_[a-z_]+\{[a-z_]+="([^"\\]|\\.)*"(,[a-z_]+="([^"\\]|\\.)*")*\} ([-+0-9.e]+|NaN|[-+]Inf))$' "$1")
  [ -z "$bad" ] || wrong "lines of $1 are not of the format: $bad"
  [ "$(tail -n 1 "$1")" = '# EOF' ] || wrong "$1 does not end with # EOF"
  [ -z "$(sed -nE 's/^(hortator_[a-z_]+)\{.*/\1/p' "$1" | uniq | sort | uniq -d)" ] || wrong "the lines of a metric are apart in $1"
  [ -z "$(sed -E 's/ [^ ]+$//' "$1" | grep '{' | sort | uniq -d)" ] || wrong "a sample is there twice in $1"
}
# has FILE PATTERN
has() { grep -qE "$2" "$1" || wrong "$1 does not have $2: $(cat "$1")"; }

# while it runs, and at its end
run_it() { HORTATOR_METRICS_SECONDS=1 HORTATOR_RUN_DIR=$work/runs/a timeout 60 "$hortator" launch -n 2 "$sleeping" weak "$@" >log 2>&1; }
run_it 120 30 &
job=$!
for _ in $(seq 100); do [ -s runs/a/metrics.prom ] && break; sleep 0.1; done
cp runs/a/metrics.prom live.prom
call='a running job' code=0 out='' err=''
valid live.prom
has live.prom '^hortator_run_state\{run="/.*/runs/a",job="",state="running"\} 1$'
wait "$job" || { cat log; wrong 'the run failed'; }
valid runs/a/metrics.prom
has runs/a/metrics.prom '^hortator_run_state\{.*state="over"\} 1$'
has runs/a/metrics.prom '^hortator_updates\{[^}]*\} 120$'
has runs/a/metrics.prom '^hortator_memory_bytes\{[^}]*ranks="0-1",stat="max"\} [0-9]'
loss=$(sed -nE 's/^hortator_value\{.*name="loss"\} (.*)/\1/p' runs/a/metrics.prom)
logged=$(tail -n 1 runs/a/logs/*.jsonl | sed -nE 's/.*"loss": ?([-+0-9.e]+).*/\1/p')
awk -v a="$loss" -v b="$logged" 'BEGIN { exit !(a != "" && b != "" && a - b < 1e-9 && b - a < 1e-9) }' || wrong "the loss is $loss, logged $logged"

# of the whole folder, from outside of the job
run watch runs/a --metrics a.prom --once; code_is 0
valid a.prom
has a.prom '^hortator_run_state\{.*state="finished"\} 1$'
has a.prom '^hortator_checkpoints\{.*\} 1$'
has a.prom '^hortator_failed_attempts\{.*\} 0$'
run watch runs/a --metrics absent/folder/../../a.prom --once; code_is 0
run watch runs/a runs/a --metrics b.prom --once; code_is 2; err_has '--metrics: expected one run, got 2'
HORTATOR_METRICS_SECONDS=x run launch -n 1 "$sleeping" weak 1 1; err_has "HORTATOR_METRICS_SECONDS: expected a whole number from 0, got 'x'"
rm -rf runs/a; HORTATOR_METRICS_SECONDS=0 HORTATOR_RUN_DIR=$work/runs/a run launch -n 1 "$sleeping" weak 50 30; code_is 0
[ ! -e runs/a/metrics.prom ] || wrong 'the file was switched off'

# every metric of the dashboard is one that the sources write
sources=$(dirname "$0")/../../../src/observe/status/metrics_text.cpp
while read -r name; do
  grep -q "\"${name#hortator_}\"" "$sources" || wrong "the dashboard asks for $name, which is not a metric"
done < <(grep -oE 'hortator_[a-z_]+' "$dashboard" | sort -u)

# with the real tools
if ! command -v promtool >/dev/null; then
  echo 'skipped: promtool is missing (apt-get install prometheus)'
elif ! checked=$(promtool check metrics <a.prom 2>&1) || [ -n "$checked" ]; then
  wrong "promtool: $checked"
fi
exporter=$(command -v prometheus-node-exporter || command -v node_exporter) || exporter=''
if [ -z "$exporter" ] || ! command -v prometheus >/dev/null; then
  echo 'skipped: prometheus or its node exporter is missing (apt-get install prometheus prometheus-node-exporter)'
else
  mkdir textfiles data
  cp a.prom textfiles/
  port=$((20000 + RANDOM % 20000))
  printf 'global: {scrape_interval: 1s}\nscrape_configs: [{job_name: node, static_configs: [{targets: ["127.0.0.1:%d"]}]}]\n' $((port + 1)) >prometheus.yml
  "$exporter" --collector.disable-defaults --collector.textfile --collector.textfile.directory="$work/textfiles" --web.listen-address=127.0.0.1:$((port + 1)) >exporter.log 2>&1 &
  exporter_job=$!
  prometheus --config.file=prometheus.yml --storage.tsdb.path=data --web.listen-address=127.0.0.1:"$port" >prometheus.log 2>&1 &
  prometheus_job=$!
  scraped=''
  for _ in $(seq 100); do
    scraped=$(promtool query instant "http://127.0.0.1:$port" 'hortator_value{name="loss"}' 2>/dev/null | sed -nE 's/.*=> ([-+0-9.e]+) @.*/\1/p')
    [ -n "$scraped" ] && break
    sleep 0.2
  done
  kill "$exporter_job" "$prometheus_job"
  wait
  awk -v a="$scraped" -v b="$logged" 'BEGIN { exit !(a != "" && b != "" && a - b < 1e-9 && b - a < 1e-9) }' ||
    wrong "Prometheus has the loss '$scraped', logged '$logged': $(tail -n 3 exporter.log prometheus.log)"
fi

[ "$failures" = 0 ] || { echo "$failures wrong"; exit 1; }
