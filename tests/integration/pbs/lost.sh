#!/usr/bin/env bash
# lost.sh HORTATOR BINARIES: hosts of jobs are lost on a real OpenPBS of three hosts. It runs under tests/tools/pbs-two-hosts.sh -N 3.
set -uo pipefail
hortator=$1 binaries=$2
# shellcheck source=tests/integration/pbs/support.sh
. "$(dirname "${BASH_SOURCE[0]}")/support.sh"

# with_loss NAME HOW FILE MAP SECONDS: HOW (lose or cut) happens to pbs2 once the job has made some steps. The job ends well within that time: it neither
# waits for the dead host nor begins again, but resumes from a checkpoint with the ranks of MAP.
with_loss() {
  local name=$1 how=$2 file=$3 map=$4 seconds=$5 lost resumed
  if seen '^step 19$' "$file"; then
    "$PBS_HOST" "$how" pbs2
    lost=$EPOCHREALTIME
    if ends_with "$name" 0 "$seconds"; then
      resumed=$(sed -n '/ loaded .*checkpoint$/,$p' "$file" | grep -a -m 1 '^step ')
      if [[ $resumed == 'step '[1-9]* ]]; then ok "$name: resumes at $resumed, and ends after $(since "$lost") ms"; else failed "$name: resumes at $resumed"; fi
      expect "$name: ranks" "$(grep -a '  map  ' "$file" | tail -n 1 | sed 's/.*map  *//')" "$map"
      has "$name: the lost host is named" 'pbs2 (was lost|is bad: does not answer)|lost nodes: pbs2' "$file"
    fi
  fi
  rm -rf run
  "$PBS_HOST" lose pbs2 2>/dev/null
  "$PBS_HOST" start pbs2 && "$PBS_HOST" free 3
}

# A spare node takes the place of a lost one.
submit --nodes 2 --ranks-per-node 1 --spare-nodes 1 --name spare --time 00:05:00 --max-restarts 1 --run-dir run -- "$binaries/stopping" 400
with_loss 'a spare node' lose "$(output_of "$id")" 'pbs1: 0; pbs3: 1' 100
if grep -aq 'The PBS job has' "$(output_of "$id")"; then failed 'a spare node: warns of the nodes that are not used'; fi

# Without one the job continues on the others.
submit --nodes 2 --ranks-per-node 1 --name fewer --time 00:05:00 --max-restarts 1 --run-dir run -- "$binaries/stopping" 400
with_loss 'a job without spare nodes' lose "$(output_of "$id")" 'pbs1: 0' 100

# The same with `hortator launch` in a script of one's own
alice mkdir launched
cat >launched/job.sh <<SH
#!/bin/bash
#PBS -l select=2:ncpus=1:mpiprocs=1 -l place=scatter -l walltime=00:05:00 -j oe -k doe
cd \$PBS_O_WORKDIR
"$hortator" launch --max-restarts 1 "$binaries/stopping" 400
SH
id=$(cd launched && alice qsub job.sh)
with_loss 'hortator launch' lose "launched/job.sh.o${id%%.*}" 'pbs1: 0' 100

# A host that vanishes from the network: neither PBS nor mpirun notices for minutes, but the ranks do.
submit --nodes 2 --ranks-per-node 1 --spare-nodes 1 --name cut --time 00:08:00 --max-restarts 1 --run-dir run --env HORTATOR_TIMEOUT=10s -- "$binaries/stopping" 400
with_loss 'a host without network' cut "$(output_of "$id")" 'pbs1: 0; pbs3: 1' 240

exit $((failures > 0))
