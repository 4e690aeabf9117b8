#!/usr/bin/env bash
# hortator trace, and the last collectives of ranks: trace.sh HORTATOR TRACED. The trace of 4 ranks is one file that says of each collective its bytes,
# group and ranks; collectives of one sequence number overlap in time within 50 us, also where hosts' clocks differ. HolisticTraceAnalysis, where Python
# has it (pip install HolisticTraceAnalysis; HORTATOR_TEST_PYTHON names the Python), reports the overlap of communication.
set -u
hortator=$1 traced=$2
test_python=${HORTATOR_TEST_PYTHON:-}
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/unit/tools/support.sh
. "$here/support.sh"

run trace; code_is 2; err_has 'Expected one folder, got 0'
run trace --help; code_is 0; out_has 'usage: hortator trace'
mkdir empty
run trace empty; code_is 2; err_has "No traces in 'empty': expected profile_0.json"

HORTATOR_RUN_DIR=$work/runs/a run launch -n 4 "$traced" 8 8; code_is 0
run trace runs/a; code_is 0
out_has 'entered last'; out_has 'trace of all ranks: runs/a/profile/all_ranks.json'
echo "$out"
python3 "$here/trace.py" runs/a/profile/all_ranks.json 4 50 || wrong 'the trace of all ranks is wrong'

# Other hosts have other clocks, which also run at other rates: 40 us a second here.
mkdir -p runs/hosts/profile
python3 "$here/trace.py" --shift runs/a/profile runs/hosts/profile || wrong 'the clocks cannot be shifted'
run trace runs/hosts -o hosts.json --for-hta hta; code_is 0
echo "$out"
out_has 'between hosts known to'
python3 "$here/trace.py" hosts.json 4 50 || wrong 'clocks of hosts are not aligned'

run trace runs/a --cycle 1; code_is 2; err_has 'expected profile_0.1.json'
run trace runs/a --cycle -1; code_is 2; err_has '--cycle: expected a whole number from 0'
run trace runs/a -o absent/all.json; code_is 1; err_has "Cannot write 'absent/all.json'"
cp -r runs/a runs/part; rm runs/part/profile/profile_2.json
run trace runs/part; code_is 1; err_has 'The trace of rank 2 is missing'
cp -r runs/a runs/cut; head -c 3000 runs/a/profile/profile_1.json >runs/cut/profile/profile_1.json
run trace runs/cut; code_is 1; err_has "profile_1.json' is not a valid trace"

python=''
for one in "$test_python" python3; do
  if [ -n "$one" ] && "$one" -c 'import hta.trace_analysis' 2>/dev/null; then python=$one; break; fi
done
if [ -n "$python" ]; then
  "$python" "$here/hta_reads.py" hta 4 || wrong 'HolisticTraceAnalysis reads something else'
else
  echo 'skipped: no Python here has HolisticTraceAnalysis (pip install HolisticTraceAnalysis)'
fi

# The last collectives, when a job dies or stalls. A rank that SIGKILL ends cannot write its own.
export HORTATOR_TIMEOUT=3s
for failure in throw crash stall kill; do
  HORTATOR_RUN_DIR=$work/runs/$failure run launch -n 3 "$traced" 2 2 "$failure"
  [ "$code" != 0 ] || wrong "$failure: it was to fail"
  run trace "runs/$failure" --flight -o "$failure.json"; code_is 0
  out_has 'of 3 ranks'
  if [ "$failure" = kill ]; then
    out_has '  1 rank of it: no record'; out_has 'ranks 0, 2: in all_reduce #'
  else
    out_has 'of 3 ranks: its ranks are not in the same collective'; out_has 'rank 1: left '
  fi
  # Where a rank throws, the others leave the collective with an error as well.
  if [ "$failure" = throw ]; then continue; fi
  python3 -c "import json, sys; events = json.load(open('$failure.json'))['traceEvents']; sys.exit(not any('(not ended)' in event['name'] for event in events))" || wrong "$failure: the trace"
  run why "runs/$failure"; out_has "hortator trace runs/$failure --flight"
done
# A run that ends well removes the record of the one before.
HORTATOR_RUN_DIR=$work/runs/throw run launch -n 2 "$traced" 2 2; code_is 0
run trace runs/throw --flight; code_is 2; err_has 'No record of the last collectives'

# Each rank under a profiler. This one records its arguments and runs the program.
mkdir bin
cat >bin/perf <<'SH'
#!/bin/sh
echo "$*" >>"$HOME/perf.calls"
while [ "$1" != -- ]; do case $1 in --output=*) touch "${1#--output=}" ;; esac; shift; done
shift
exec "$@"
SH
chmod +x bin/perf
PATH=$work/bin:$PATH run launch -n 2 --run-dir runs/perf --profile perf "$traced" 2 2; code_is 0
for rank in 0 1; do [ -e "runs/perf/profile/rank_$rank.data" ] || wrong "rank $rank has no file of perf: $(ls runs/perf/profile)"; done
grep -q 'record .*--output=.*rank_1.data -- ' perf.calls || wrong "perf got $(<perf.calls)"
run launch -n 2 --profile vtune "$traced" 2 2; code_is 2; err_has 'nsys'
if ! command -v nsys >/dev/null; then run launch -n 2 --profiler nsys "$traced" 2 2; code_is 2; err_has "no program 'nsys' on PATH"; fi

[ "$failures" = 0 ] || { echo "$failures wrong"; exit 1; }
