#!/usr/bin/env bash
# jobs.sh HORTATOR BINARIES: jobs on a real OpenPBS of two hosts: printed and submitted, chained, arrays, deleted, commented. It runs under
# tests/tools/pbs-two-hosts.sh.
set -uo pipefail
hortator=$1 binaries=$2
# shellcheck source=tests/integration/pbs/support.sh
. "$(dirname "${BASH_SOURCE[0]}")/support.sh"

two_by_two='rank 0 of 4 is 0 of 2 on node 0 of 2 (pbs1, mpirun)
rank 1 of 4 is 1 of 2 on node 0 of 2 (pbs1, mpirun)
rank 2 of 4 is 0 of 2 on node 1 of 2 (pbs2, mpirun)
rank 3 of 4 is 1 of 2 on node 1 of 2 (pbs2, mpirun)'
placed() { grep -a '^rank ' "$1" | LC_ALL=C sort; }

# A printed script, submitted by qsub in an empty folder
alice mkdir project empty
(cd project && job --nodes 2 --ranks-per-node 2 --name printed --time 00:05:00 -- "$binaries/place") >job.sh 2>budget || failed "no script: $(<budget)"
has 'the CPUs of a node, as pbsnodes reports them' '^#PBS -l select=2:ncpus=2:mpiprocs=2:ompthreads=1$' job.sh
id=$(cd empty && alice qsub ../job.sh)
ends_with 'a printed script' 0 90
expect 'a printed script: ranks on both hosts' "$(placed empty/printed.o*)" "$two_by_two"

# The exit code of the job is that of the ranks.
submit --nodes 2 --ranks-per-node 2 --name submitted --time 00:05:00 -- "$binaries/place" && ends_with 'a submitted job' 0 90
expect 'a submitted job: ranks on both hosts' "$(placed "$(output_of "$id")")" "$two_by_two"
# ends NAME CODE PATTERN OPTION... -- PROGRAM...
ends() {
  local name=$1 code=$2 pattern=$3
  shift 3
  submit --nodes 2 --ranks-per-node 1 --name ends --time 00:05:00 "$@" || return
  ends_with "$name" "$code" 120
  has "$name: the reason" "$pattern" "$(output_of "$id")"
}
ends 'wrong usage' 2 'HORTATOR_ZERO_STAGE' --env HORTATOR_ZERO_STAGE=9 -- "$binaries/stopping" 2
ends 'a rank that throws' 1 'failed with code 1: .*"rank": 1,.*"host": "pbs2"' -- "$binaries/failing" one
ends 'SIGSEGV' 139 'rank 1 .*pbs2.*SIGSEGV' -- "$binaries/stalling" crashed
ends 'SIGKILL' 137 'rank 1 .*pbs2.*SIGKILL' -- "$binaries/stalling" killed

# `hortator launch` in a script of one's own finds both hosts; it is warned of the end of the job, and stops before that with code 75.
alice mkdir launched
cat >launched/job.sh <<SH
#!/bin/bash
#PBS -l select=2:ncpus=2:mpiprocs=2 -l place=scatter -l walltime=00:01:10 -j oe -k doe
cd \$PBS_O_WORKDIR
"$hortator" launch "$binaries/place"
"$hortator" launch "$binaries/stopping" 100000
SH
id=$(cd launched && alice qsub job.sh)
ends_with 'hortator launch is warned of the end' 75 120
expect 'hortator launch: ranks on both hosts' "$(placed launched/job.sh.o*)" "$two_by_two"
[ -e launched/run/checkpoint/manifest.json ] || failed 'hortator launch: no checkpoint at the end'

# A plain mpirun without support for PBS uses one of two hosts: the run warns.
alice mkdir plain
cat >plain/job.sh <<SH
#!/bin/bash
#PBS -l select=2:ncpus=2:mpiprocs=2 -l place=scatter -l walltime=00:05:00 -j oe -k doe
cd \$PBS_O_WORKDIR
mpirun -n 2 "$binaries/place"
SH
id=$(cd plain && alice qsub job.sh)
await 60
if grep -q 'mca:plm:tm:' <<<"$(ompi_info --parsable 2>/dev/null)"; then
  echo 'skipped: this mpirun supports PBS'
else
  has 'a plain mpirun that uses one of two hosts' 'The PBS job has 2 hosts, and this run uses 1' plain/job.sh.o*
fi

# A chain: each job is warned before its time limit, saves and stops; the next one resumes at the next step, and the result is that of a run that was
# never stopped. The first job could make steps for ever; the others have 100 left.
echo 1000000 >steps
# shellcheck disable=SC2016
printf '#!/bin/sh\nexec "%s" "$(cat "%s/steps")"\n' "$binaries/stopping" "$work" >program
chmod +x program
submit --nodes 2 --ranks-per-node 1 --name chain --time 00:01:00 --warning-seconds 45 --chain 4 --run-dir run -- ./program
# From the decision to stop, which the run records, to the end of the job: mpirun would wait for 16 s and more after any code but 0.
await 120
stop=$(($(date +%s) - $(stat -c %Y run/outcome.json)))
last=$(grep -a '^step ' "$(output_of "$id")" | tail -n 1)
steps=$((${last#step } + 100))
echo "$steps" >steps
expect 'chain: the first job has stopped' "$(sed -nE 's/.*"outcome": *"([a-z]*)".*/\1/p' run/outcome.json)" stopped
if [ "$stop" -le 8 ]; then ok "chain: a stopped job ends within $stop s"; else failed "chain: a stopped job ends after $stop s"; fi
await 200 "${ids[3]}"
links=0 code=''
for id in "${ids[@]}"; do
  code=$(field Exit_status)
  [ "$code" = 75 ] || break
  links=$((links + 1))
  last=$(grep -a '^step ' "$(output_of "$id")" | tail -n 1)
  first=$(grep -a -m 1 '^step ' "$(output_of "${ids[links]}")")
  expect "chain: job $((links + 1)) resumes at the next step" "$first" "step $((${last#step } + 1))"
done
if [ "$links" -ge 1 ] && [ "$code" = 0 ]; then ok "chain: stopped with 75: $links, then finished"; else failed "chain: stopped: $links, then code $code"; fi
has 'chain: nothing is left for the last job' 'an earlier job ended the chain' "$(output_of "${ids[3]}")"
alice mkdir whole
(cd whole && alice mpirun -n 2 "$binaries/stopping" "$steps" >output 2>&1) || failed 'a run that is not stopped'
for rank in 0 1; do cmp "end-$rank" "whole/end-$rank" || failed "chain: rank $rank has another result than the run that was never stopped"; done

exit $((failures > 0))
