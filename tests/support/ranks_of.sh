# shellcheck shell=bash
# Sourced. ranks_of LAUNCHER [OPTION of pgrep...]: the processes of its ranks, which MPICH's starts through a proxy; none where it is the rank itself.
ranks_of() {
  local proxies
  if proxies=$(pgrep -d , -x -P "$1" hydra_pmi_proxy); then pgrep -P "$proxies" "${@:2}"; else pgrep -P "$@"; fi
}
