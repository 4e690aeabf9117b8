# shellcheck shell=bash disable=SC2034,SC2154
# Sourced by scripts that call the command, after `hortator` is set: a temporary folder, no settings of the caller, and checks of a call.
# Each failure is printed; `failures` counts them.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
for name in $(compgen -e | grep -E '^(HORTATOR|SLURM|PBS|XDG|HF)_'); do unset "$name"; done
unset LSB_JOBID NO_COLOR
export HOME=$work
failures=0

# run ARGUMENT...: exit code in $code, standard output in $out, standard error in $err
run() {
  code=0
  "$hortator" "$@" >out 2>err </dev/null || code=$?
  out=$(<out)
  err=$(<err)
  call="hortator $*"
}
# spend ARGUMENT...: the same, and its processor time in milliseconds in $spent, which nothing that runs beside it makes longer
spend() {
  local TIMEFORMAT='%U %S'
  { time run "$@"; } 2>spent
  spent=$(awk '{ printf "%d", 1000 * ($1 + $2) }' spent)
}
wrong() { printf '%s: %s\nexit code %s\nstdout: %s\nstderr: %s\n\n' "$call" "$1" "$code" "$out" "$err"; failures=$((failures + 1)); }
code_is() { [ "$code" = "$1" ] || wrong "exit code $1 was expected"; }
out_has() { [[ $out == *"$1"* ]] || wrong "standard output does not have '$1'"; }
err_has() { [[ $err == *"$1"* ]] || wrong "standard error does not have '$1'"; }
out_is() { [ "$out" = "$1" ] || wrong "standard output should be '$1'"; }
