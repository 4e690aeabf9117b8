#!/usr/bin/env bash
# comment.sh SLEEPING: the comment that a run gives its job, with schedulers' commands that record their arguments, fail, or hang.
set -u
sleeping=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
failures=0
wrong() {
  printf 'failed: %s\nasked: %s\nlog: %s\n' "$1" "$(cat asked 2>/dev/null)" "$(cat log)"
  failures=$((failures + 1))
}
mkdir fakes
export PATH=$work/fakes:$PATH
# fake NAME COMMAND: a scheduler's command
fake() {
  printf '#!/bin/sh\necho "%s $*" >>"%s/asked"\n%s\n' "$1" "$work" "$2" >"fakes/$1"
  chmod +x "fakes/$1"
}
# job VARIABLES... -- UPDATES MILLISECONDS: runs in a job, as one rank without a launcher
job() {
  local variables=()
  while [ "$1" != -- ]; do
    variables+=("$1")
    shift
  done
  rm -rf runs asked
  env "${variables[@]}" timeout 60 "$sleeping" weak "$2" "$3" >log 2>&1 || wrong "the run failed: ${variables[*]}"
}

fake scontrol ''
fake qalter ''
job SLURM_JOB_ID=77 HORTATOR_COMMENT_SECONDS=1 -- 150 30
count=$(grep -c . asked)
[[ $count -ge 3 && $count -le 8 ]] || wrong "expected about one command a second, got $count"
grep -qE '^scontrol update JobId=77 Comment=step [0-9]+ .*loss [-0-9.e]+' asked || wrong 'the comment of a running job'
grep -qE '^scontrol update JobId=77 Comment=over: step 150 ' <<<"$(tail -n 1 asked)" || wrong 'the comment at the end'
job SLURM_JOB_ID=77 HORTATOR_COMMENT_SECONDS=0 -- 80 30
[ ! -e asked ] || wrong 'it was switched off'
job SLURM_JOB_ID=77 -- 80 30
[ ! -e asked ] || wrong 'nothing is asked of the scheduler in the first 20 seconds'
job -- 80 30
[ ! -e asked ] || wrong 'there is no job'
job PBS_JOBID=12.server PBS_ENVIRONMENT=PBS_BATCH HORTATOR_COMMENT_SECONDS=1 -- 100 30
grep -qE '^qalter -W comment=step [0-9]+ .* 12.server$' asked || wrong 'the comment of a PBS job'

# one that fails is not asked again; one that hangs holds up neither the run nor its end
fake scontrol 'exit 1'
job SLURM_JOB_ID=77 HORTATOR_COMMENT_SECONDS=1 -- 130 30
[ "$(grep -c . asked)" = 1 ] || wrong 'a command that fails was to be tried once'
[ "$(grep -c 'does not let this job set its comment' log)" = 1 ] || wrong 'the refusal was to be logged once'
fake scontrol 'sleep 50'
begin=$SECONDS
job SLURM_JOB_ID=77 HORTATOR_COMMENT_SECONDS=1 -- 100 30
[ $((SECONDS - begin)) -le 25 ] || wrong "a command that hangs held up the run: $((SECONDS - begin)) s"
exit $((failures > 0))
