#!/usr/bin/env bash
# in_group.sh PROGRAM: PROGRAM trains a model of 1.5 GiB. In a control group with a quarter of that for the whole process it cannot train in
# memory, but trains from disk with the same losses. Exit code 77 if no control group can be created.
set -uo pipefail
program=$1
limit=$((384 << 20))

fail() {
  echo "failed: $1" >&2
  exit 1
}

# Creates a group with the memory limit, with version 2 of control groups or version 1.
make_group() {
  local mine name
  mine=$(sed -n 's/^0:://p' /proc/self/cgroup)
  group=/sys/fs/cgroup$mine/hortator-test-$$
  name=memory.max
  if [ ! -e /sys/fs/cgroup/cgroup.controllers ]; then
    mine=$(sed -n 's/^[0-9]*:memory://p' /proc/self/cgroup)
    group=/sys/fs/cgroup/memory$mine/hortator-test-$$
    name=memory.limit_in_bytes
  fi
  mkdir "$group" 2>/dev/null || return 1
  trap 'rmdir "$group"' EXIT
  { echo "$limit" >"$group/$name"; } 2>/dev/null || return 1
  if [ -e "$group/memory.swap.max" ]; then echo 0 >"$group/memory.swap.max"; fi
}

within_group() (
  echo "$BASHPID" >"$group/cgroup.procs" || exit 77
  exec "$@"
)

make_group || { echo 'skipped: no control group with a memory limit can be created'; exit 77; }
work=$(mktemp -d -p .)
trap 'rm -rf "$work"; rmdir "$group"' EXIT
in_memory=$("$program") || fail 'training in memory fails'
within_group "$program" >/dev/null 2>&1 && fail 'the limit has no effect: training in memory succeeds within it'
on_disk=$(within_group "$program" "$work/scratch") || fail 'training from disk fails within the limit'
[ "$in_memory" = "$on_disk" ] || fail "the losses differ: $in_memory from memory, $on_disk from disk"
[ -z "$(ls -A "$work/scratch")" ] || fail 'files are left in the folder'
echo "losses with 1.5 GiB in memory, and in $((limit >> 20)) MiB from disk:" "$on_disk"
