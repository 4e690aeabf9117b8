#!/usr/bin/env bash
# in_group.sh PROGRAM: what PROGRAM trains takes 1.5 GiB. In a control group with a quarter of that, all of the process included, it
# cannot train in memory, and trains from disk to the same losses. Exit code 77: there is no such group to be had.
set -uo pipefail
program=$1
limit=$((384 << 20))

fail() {
  echo "failed: $1" >&2
  exit 1
}

# Version 2 of control groups, or version 1.
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

make_group || { echo 'skipped: no control group of memory can be made here'; exit 77; }
work=$(mktemp -d -p .)
trap 'rm -rf "$work"; rmdir "$group"' EXIT
in_memory=$("$program") || fail 'it does not train in memory'
within_group "$program" >/dev/null 2>&1 && fail 'the limit is none: it trains in memory within it'
on_disk=$(within_group "$program" "$work/scratch") || fail 'it does not train from disk within the limit'
[ "$in_memory" = "$on_disk" ] || fail "the losses differ: $in_memory from memory, $on_disk from disk"
[ -z "$(ls -A "$work/scratch")" ] || fail 'files are left in the folder'
echo "losses with 1.5 GiB in memory, and in $((limit >> 20)) MiB from disk:" "$on_disk"
