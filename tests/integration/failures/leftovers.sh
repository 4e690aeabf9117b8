# shellcheck shell=bash
# Sourced. What a job must not leave behind: processes, found by a variable in their environment, and memory with our name.

mark_processes() {
  export HORTATOR_TEST_MARK="$$-$RANDOM-$RANDOM"
}

# Not grep itself, though. Zombies have no environment any more: what the launcher has killed may not have been waited for yet.
marked_processes() {
  local environment
  env -u HORTATOR_TEST_MARK grep -lzs "^HORTATOR_TEST_MARK=$HORTATOR_TEST_MARK\$" /proc/[0-9]*/environ | while read -r environment; do
    echo "process $(tr '\0' ' ' 2>/dev/null <"${environment%environ}cmdline")"
  done
}

# Launchers give their processes some seconds to go.
leftovers() {
  local found=""
  for _ in $(seq 50); do
    found=$(marked_processes)
    [ -n "$found" ] || break
    sleep 0.2
  done
  echo "$found$(find /dev/shm -name '*hortator*' 2>/dev/null)"
}
