# Runs downloads beside other work. To be sourced, not executed.
# shellcheck shell=bash disable=SC2034,SC2154  # the files of the set-up share their variables

background=()

# begin COMMAND...: starts a command in the background, whose process is then $!. If the set-up ends before it, so does the command, with all its
# processes.
begin() {
  trap 'end_background' EXIT
  set -m  # a process group of its own
  (trap - EXIT; "$@") </dev/null &
  set +m
  background+=($!)
}
end_background() {
  local process
  for process in "${background[@]}"; do kill -- "-$process" 2>/dev/null || true; done
}

# finish PROCESS LOG: waits for a command that `begin` has started, prints its log, also while it is still written, and returns the command's exit code.
finish() {
  tail -n +1 -f --pid="$1" "$2" || true
  wait "$1"
}
