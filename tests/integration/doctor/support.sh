# Shared by the doctor's tests: the working folder, and the check for a finding. To be sourced, not executed.
# shellcheck shell=bash disable=SC2034,SC2154
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=tests/setup/support.sh
. "$here/../../setup/support.sh"
cd "$scratch" || exit 1
for name in $(compgen -e | grep -E '^(SLURM|PBS|HORTATOR)_' || true); do unset "$name"; done

facts=$("$hortator" env)
has_cuda=1
[[ ! $facts =~ 'built with'\ +no ]] || has_cuda=0
# The version text of an mpirun of another MPI.
foreign='HYDRA build details:'
[[ $facts == *'Open MPI v'* ]] || foreign='mpirun (Open MPI) 4.1.4'
# The same, of one for which this build has no library.
further_libraries=${hortator%/bin/hortator}/lib/hortator refused=$foreign
[ ! -d "$further_libraries" ] || refused='mpirun (Open MPI) 3.1.6'

# finds CHECK SEVERITY PATTERN REMEDY: the latest output has a finding that matches PATTERN, and REMEDY in the line below it
finds() {
  local line
  line=$(grep -nE "^$2 +$1 +.*$3" <<<"$output" | head -n 1 | cut -d : -f 1) || true
  [ -n "$line" ] || wrong "there is no $2 of $1 that matches '$3'"
  grep -qE "^ +remedy: .*$4" <<<"$(sed -n "$((line + 1))p" <<<"$output")" || wrong "the remedy of $1 does not match '$4'"
}
