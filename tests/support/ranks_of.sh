# shellcheck shell=bash
# To be sourced. ranks_of LAUNCHER [OPTION of pgrep...]: prints the processes of the launcher's ranks (with MPICH, children of its proxy); none if LAUNCHER is the rank.
# A rank that was started without a launcher has a daemon of Open MPI as its child, which is no rank.
ranks_of() {
  local proxies parent=$1 id
  if proxies=$(pgrep -d , -x -P "$1" hydra_pmi_proxy); then parent=$proxies; fi
  shift
  for id in $(pgrep -P "$parent" "$@"); do
    case $(cat "/proc/$id/comm" 2>/dev/null) in orted | prted | prterun) ;; *) echo "$id" ;; esac
  done
}
