# shellcheck shell=bash
# To be sourced. Finds what a job must not leave behind: processes, marked by an environment variable, and shared memory of Hortator.

mark_processes() {
  export HORTATOR_TEST_MARK="$$-$RANDOM-$RANDOM"
}

# Prints the marked processes, without grep itself and without zombies, which have no environment: the launcher may not have reaped them yet.
marked_processes() {
  local environment
  env -u HORTATOR_TEST_MARK grep -lzs "^HORTATOR_TEST_MARK=$HORTATOR_TEST_MARK\$" /proc/[0-9]*/environ | while read -r environment; do
    echo "process $(tr '\0' ' ' 2>/dev/null <"${environment%environ}cmdline")"
  done
}

# Prints what is left after up to 10 s: launchers give their processes some seconds to end, and tests that run at the same time may be just making
# shared memory, whose names they remove at once.
leftovers() {
  local found=""
  for _ in $(seq 50); do
    found=$(marked_processes; find /dev/shm -name '*hortator*' 2>/dev/null)
    [ -n "$found" ] || break
    sleep 0.2
  done
  echo "$found"
}
