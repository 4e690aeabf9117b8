# shellcheck shell=bash
# To be sourced by the drills on a real OpenPBS, which have the paths of the command and of the test programs in $hortator and $binaries. They run in a
# folder of alice's that all hosts see.
for name in $(compgen -e | grep -E '^(HORTATOR|SLURM|PBS|XDG|HF|OMPI|PRTE|OMP)_' | grep -vE '^PBS_(ON|HOST|DIR|CPUS)$'); do unset "$name"; done
work=$(mktemp -d /tmp/pbs-drill.XXXXXX)
trap 'rm -rf "$work"' EXIT
"$PBS_ON" pbs1 chown alice: "$work"
cd "$work" || exit 1
failures=0
ok() { echo "ok: $1"; }
failed() {
  echo "failed: $1"
  find . \( -name '*.out' -o -name '*.OU' -o -name '*.o[0-9]*' \) -exec tail -n 40 {} + | sed 's/^/    /'
  failures=$((failures + 1))
}
since() { echo $((${EPOCHREALTIME/[.,]/} / 1000 - ${1/[.,]/} / 1000)); }
# expect NAME GOT WANTED
expect() { if [ "$2" = "$3" ]; then ok "$1"; else failed "$1: expected $3, got $2"; fi; }
# has NAME PATTERN FILE
has() { if grep -aqE -- "$2" "$3"; then ok "$1"; else failed "$1: no line of $3 matches '$2'"; fi; }
alice() { "$PBS_ON" alice@pbs1 "$@"; }
alice "${hortator:?}" --version >/dev/null || { echo "skipped: an ordinary user cannot run $hortator" && exit 77; }
job() { alice "$hortator" job "$@"; }

id='' records=''
# submit OPTION... -- PROGRAM...: submits a job; sets $id to its number and $records to its folder, and $ids to the numbers of a chain's jobs
submit() {
  local said
  said=$(job --submit "$@" 2>submit.err)
  mapfile -t ids < <(sed -n 's/^submitted: \([^ ]*\).*/\1/p' <<<"$said")
  id=${ids[0]:-}
  records=$(sed -n '1s/^submitted: [^ ]*  \(.*\)\/job.sh$/\1/p' <<<"$said")
  [ -n "$id" ] || { failed "not submitted: $said $(<submit.err)"; return 1; }
}
# field NAME [ID]: of the job, which may have ended; lines that PBS has folded are joined
field() { alice qstat -xf "${2:-$id}" 2>/dev/null | sed -n ':a;N;$!ba;s/\n\t//g;p' | sed -n "s/^ *$1 = //p"; }
# await SECONDS [ID]: until the job has ended
await() {
  local end=$((SECONDS + $1))
  while [ "$SECONDS" -lt "$end" ]; do
    [ "$(field job_state "${2:-$id}")" != F ] || return 0
    sleep 0.25
  done
  failed "the job ${2:-$id} has not ended after $1 s: $(alice qstat -a)"
  alice qdel -W force "${2:-$id}"
  return 1
}
# ends_with NAME CODE SECONDS [ID]
ends_with() { await "$3" "${4:-$id}" && expect "$1: exit code" "$(field Exit_status "${4:-$id}")" "$2"; }
# output_of ID: the file
output_of() { echo "$records/$1.OU"; }
# seen PATTERN FILE [SECONDS]: until a line of the file matches
seen() {
  local i
  for ((i = 0; i < ${3:-60} * 10; i++)); do
    grep -aqsE -- "$1" "$2" && return 0
    sleep 0.1
  done
  failed "no line of $2 matches '$1'"
  return 1
}
# The processes and files of alice on two hosts. A qsub stays for a while to serve the next one.
left_behind() {
  local host
  for host in pbs1 pbs2; do
    # shellcheck disable=SC2016
    "$PBS_ON" "$host" sh -c 'ps -u alice -o comm= | grep -v qsub | sed "s/^/$(hostname): /"; find /dev/shm -user alice -name "*hortator*"'
  done
}
