# shellcheck shell=bash
# To be sourced by drills of the program `surviving`, which have the launcher's process in $launcher, and a function `complain` that ends them.

# wait_until WHAT COMMAND...: until the command succeeds, for a minute, while the launch runs
wait_until() {
  local what=$1
  shift
  for _ in $(seq 3000); do
    ! "$@" || return 0
    kill -0 "${launcher:?}" 2>/dev/null || complain 'the launch has ended early'
    sleep 0.02
  done
  complain "$what"
}
has_begun() { grep -qsx "$1" steps.txt; }
has_started() { [ -f resumed.txt ] && [ "$(wc -l <resumed.txt)" -ge "$1" ]; }
# Waits until a step with this number has begun.
wait_for_step() { wait_until "step $1 has not begun" has_begun "$1"; }
# Waits until the program has started, and loaded, that many times.
wait_for_start() { wait_until 'the run does not start again' has_started "$1"; }
# No step begins after this one, until another number is set or the file `hold` is removed.
hold_at() { echo "$1" >hold.new && mv hold.new hold; }
