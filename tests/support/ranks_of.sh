# shellcheck shell=bash
# To be sourced. ranks_of LAUNCHER [OPTION of pgrep...]: prints the processes of the launcher's ranks (with MPICH, children of its proxy); none if LAUNCHER is the rank.
# The daemon that Open MPI starts as a child of a rank without a launcher is left out.
ranks_of() {
  local proxies parent=$1 id
  if proxies=$(pgrep -d , -x -P "$1" hydra_pmi_proxy); then parent=$proxies; fi
  shift
  for id in $(pgrep -P "$parent" "$@"); do
    case $(cat "/proc/$id/comm" 2>/dev/null) in orted | prted | prterun) ;; *) echo "$id" ;; esac
  done
}
