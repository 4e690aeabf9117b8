# shellcheck shell=bash
# To be sourced. ranks_of LAUNCHER [OPTION of pgrep...]: prints the processes of the launcher's ranks (with MPICH, children of its proxy); none if LAUNCHER is the rank.
ranks_of() {
  local proxies
  if proxies=$(pgrep -d , -x -P "$1" hydra_pmi_proxy); then pgrep -P "$proxies" "${@:2}"; else pgrep -P "$@"; fi
}
