#!/usr/bin/env bash
# Starts a real OpenPBS on this machine (server, scheduler and communication on the host pbs1, a mom on each of pbs1..pbsN), runs a command beside it,
# and ends everything. Needs root, iproute2, and an OpenPBS built for the prefix /opt/pbs: installed there, or by `make install DESTDIR=FOLDER` in
# the folder that OPENPBS_ROOT names (or its subfolder dest). Each host has its own network, name, processes, /etc, /opt, /home, /var/spool, /var/tmp
# and /dev/shm; the rest is shared, as a parallel file system. Jobs belong to the user alice. Slurm's commands are hidden. For the command:
#   "$PBS_ON" HOST COMMAND...   runs a command on a host, as root        "$PBS_ON" alice@HOST COMMAND...   as alice
#   "$PBS_HOST" lose HOST       ends all of a host at once               "$PBS_HOST" cut HOST              cuts its network: packets vanish
#   "$PBS_HOST" start HOST      starts it again                          "$PBS_HOST" free N                waits until N hosts are free
# -c: CPUs that each host claims to have
#   pbs-two-hosts.sh [-N HOSTS] [-c CPUS_A_HOST] COMMAND [ARG...]        e.g. pbs-two-hosts.sh sh -c '"$PBS_ON" pbs1 pbsnodes -aS'
set -euo pipefail
here=$(realpath "${BASH_SOURCE[0]}")

# The prefix of the installation; nothing if there is none.
find_installation() {
  local prefix
  for prefix in "${OPENPBS_ROOT:-}" "${OPENPBS_ROOT:-}"/opt/pbs "${OPENPBS_ROOT:-}"/dest/opt/pbs "$(realpath "$(command -v pbs_server || echo /)/../..")"; do
    if [ -x "$prefix/sbin/pbs_server" ] && [ -x "$prefix/sbin/pbs_mom" ]; then echo "$prefix" && return; fi
  done
}
outer_path=$PATH
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin # PBS embeds the Python of the system

pid_of() { cat "$PBS_DIR/$1.pid"; }
# on [USER@]HOST COMMAND...: with a login's environment, in this folder
on() {
  local user=root host=$1 as=()
  shift
  if [[ $host == *@* ]]; then
    user=${host%@*} host=${host#*@}
    as=(setpriv --reuid "$user" --regid "$user" --init-groups)
  fi
  nsenter --target "$(pid_of "$host")" --net --uts --mount --pid -- env -C "$PWD" -i PATH="$outer_path:/opt/pbs/bin:/opt/pbs/sbin" \
    HOME="$([ "$user" = root ] && echo /root || echo "/home/$user")" USER="$user" LOGNAME="$user" TERM=dumb LANG=C.UTF-8 "${as[@]}" "$@"
}

# Makes the namespaces of a host, and process 1 in them, which ends with this script unless that runs for `start` only.
tie=()
make_namespaces() {
  local host=$1
  rm -rf "${PBS_DIR:?}/$host" "$PBS_DIR/$host.pid"
  mkdir -p "$PBS_DIR/$host"
  # shellcheck disable=SC2016
  ${tie[@]+"${tie[@]}"} unshare --net --uts --mount --pid --fork --kill-child --mount-proc --propagation private bash -euc '
    host=$0 own=$PBS_DIR/$0
    hostname "$host"
    ip link set lo up
    mount -t tmpfs tmpfs "$own"
    for folder in etc opt usr/lib/systemd; do
      mkdir -p "$own/$folder" "$own/work/$folder"
      mount -t overlay -o "lowerdir=/$folder,upperdir=$own/$folder,workdir=$own/work/$folder" overlay "/$folder"
    done
    for folder in /var/spool /home; do mount -t tmpfs -o mode=755 tmpfs "$folder"; done
    for folder in /var/tmp /dev/shm; do mount -t tmpfs -o mode=1777 tmpfs "$folder"; done
    mkdir -p /opt/pbs /home/alice "$own/empty"
    [ "$OPENPBS_PREFIX" = /opt/pbs ] || mount --bind "$OPENPBS_PREFIX" /opt/pbs
    for program in sbatch srun sinfo squeue scontrol salloc sacct scancel; do
      path=$(command -v "$program") || continue
      mount --bind /dev/null "$path"
    done
    { echo 127.0.0.1 localhost; for i in $(seq 9); do echo "10.97.0.$i pbs$i"; done; } >/etc/hosts
    echo "PATH=\$PATH:/opt/pbs/bin" >/etc/profile.d/pbs.sh
    [ ! -d /etc/openmpi ] || echo "mpi_yield_when_idle = 1" >>/etc/openmpi/openmpi-mca-params.conf
    useradd --non-unique --uid 2001 --no-create-home --home-dir /home/alice --shell /bin/bash alice
    chown alice: /home/alice
    : >"$own.made"
    while :; do sleep 3600; done' "$host" </dev/null >"$PBS_DIR/$host.log" 2>&1 &
  local unshared=$!
  for _ in $(seq 100); do
    [ ! -e "$PBS_DIR/$host.made" ] || break
    kill -0 "$unshared" 2>/dev/null || { cat "$PBS_DIR/$host.log" >&2; return 1; }
    /bin/sleep 0.1
  done
  rm "$PBS_DIR/$host.made"
  pgrep -P "$unshared" | head -n 1 >"$PBS_DIR/$host.pid"
}

# A link from the host to the bridge, which is in a network namespace of its own.
connect() {
  local host=$1 number=${1#pbs} switch
  switch=$(cat "$PBS_DIR/switch.pid")
  nsenter --target "$switch" --net ip link del "to$number" 2>/dev/null || true
  nsenter --target "$switch" --net ip link add "to$number" type veth peer name eth0 netns "$(pid_of "$host")"
  nsenter --target "$switch" --net ip link set "to$number" master bridge up
  nsenter --target "$(pid_of "$host")" --net ip addr add "10.97.0.$number/24" dev eth0
  nsenter --target "$(pid_of "$host")" --net ip link set eth0 up
}

start_pbs() {
  local host=$1 is_first=0
  [ "$host" != pbs1 ] || is_first=1
  # shellcheck disable=SC2016
  on "$host" bash -euc '
    printf "%s\n" PBS_EXEC=/opt/pbs PBS_HOME=/var/spool/pbs PBS_SERVER=pbs1 "PBS_START_SERVER=$1" "PBS_START_SCHED=$1" "PBS_START_COMM=$1" \
      PBS_START_MOM=1 PBS_CORE_LIMIT=unlimited >/etc/pbs.conf
    /opt/pbs/libexec/pbs_habitat
    printf "%s\n" "\$clienthost pbs1" "\$usecp *:/ /" >/var/spool/pbs/mom_priv/config
    /opt/pbs/libexec/pbs_init.d start' start "$is_first" </dev/null >"$PBS_DIR/$host.start" 2>&1 || { cat "$PBS_DIR/$host.start" >&2; return 1; }
}

start_host() {
  make_namespaces "$1"
  connect "$1"
  start_pbs "$1"
  on pbs1 pbsnodes "$1" >/dev/null 2>&1 || add_node "$1"
}
count_free() { on pbs1 pbsnodes -a 2>/dev/null | grep -c 'state = free' || true; }
await_free() {
  for _ in $(seq 240); do [ "$(count_free)" -lt "$1" ] || return 0; /bin/sleep 0.25; done
  echo "$1 hosts are not free after 60 s:" >&2
  on pbs1 pbsnodes -aS >&2
  return 1
}

# A job on all hosts. On a busy machine the moms may not have heard of each other, and PBS holds the job: then their hosts are named to the server again.
try_out() {
  local i id try
  for try in 1 2 3 4 5; do
    id=$(on alice@pbs1 qsub -N try -l "select=$1:ncpus=1" -l place=scatter -k n -j n -- /bin/true)
    for _ in $(seq 40); do
      [ "$(on pbs1 qstat -xf "$id" | sed -n 's/^ *Exit_status = //p')" != 0 ] || return 0
      /bin/sleep 0.25
    done
    echo "A job on $1 hosts does not start, attempt $try" >&2
    on pbs1 qdel -W force "$id" 2>/dev/null || true
    for i in $(seq 2 "$1"); do on pbs1 qmgr -c "delete node pbs$i" && add_node "pbs$i"; done
    await_free "$1"
  done
  return 1
}
add_node() {
  on pbs1 qmgr -c "create node $1"
  on pbs1 qmgr -c "set node $1 resources_available.ncpus=$PBS_CPUS"
}

lose_host() { kill -KILL "$(pid_of "$1")"; }
cut_host() { nsenter --target "$(cat "$PBS_DIR/switch.pid")" --net ip link set "to${1#pbs}" nomaster; }

run_all() {
  local hosts=2 cpus=2 option prefix i
  while getopts N:c: option; do case $option in N) hosts=$OPTARG ;; c) cpus=$OPTARG ;; *) sed -n '2,11p' "$here" >&2; exit 2 ;; esac; done
  shift $((OPTIND - 1))
  [ $# -ge 1 ] || { sed -n '2,11p' "$here" >&2; exit 2; }
  prefix=$(find_installation)
  [ -n "$prefix" ] || { echo 'No OpenPBS: expected one in /opt/pbs, or in the folder that OPENPBS_ROOT names' >&2; exit 2; }
  [ -u "$prefix/sbin/pbs_iff" ] || { echo "$prefix/sbin/pbs_iff: users cannot call PBS, as it is not setuid (chmod 4755 pbs_iff pbs_rcp, as OpenPBS's INSTALL says)" >&2; exit 2; }
  PBS_DIR=$(mktemp -d /tmp/pbs.XXXXXX)
  chmod 755 "$PBS_DIR"
  export PBS_DIR OPENPBS_PREFIX=$prefix PBS_CPUS=$cpus PBS_ON=$PBS_DIR/on PBS_HOST=$PBS_DIR/host
  trap end_all EXIT
  printf '#!/bin/bash\nexec "%s" --on "$@"\n' "$here" >"$PBS_ON"
  printf '#!/bin/bash\nexec "%s" --host "$@"\n' "$here" >"$PBS_HOST"
  chmod +x "$PBS_ON" "$PBS_HOST"
  tie=(setpriv --pdeathsig KILL)
  "${tie[@]}" unshare --net sleep infinity &
  echo $! >"$PBS_DIR/switch.pid"
  for _ in $(seq 50); do [ "$(readlink "/proc/$(cat "$PBS_DIR/switch.pid")/ns/net")" = "$(readlink /proc/self/ns/net)" ] || break; /bin/sleep 0.1; done
  nsenter --target "$(cat "$PBS_DIR/switch.pid")" --net ip link add bridge type bridge
  nsenter --target "$(cat "$PBS_DIR/switch.pid")" --net ip link set bridge up
  for i in $(seq "$hosts"); do start_host "pbs$i"; done
  # the history is for qstat -x, flatuid makes alice of one host alice of the other
  for i in job_history_enable=True flatuid=True scheduler_iteration=10; do on pbs1 qmgr -c "set server $i"; done
  await_free "$hosts"
  try_out "$hosts"
  "$@"
}
end_all() {
  local file
  for file in "$PBS_DIR"/*.pid; do kill -KILL "$(cat "$file")" 2>/dev/null || true; done
  wait 2>/dev/null || true
  rm -rf "$PBS_DIR"
}

case ${1:-} in
  --on) shift && on "$@" ;;
  --host)
    case $2 in
      lose) lose_host "$3" ;;
      cut) cut_host "$3" ;;
      start) start_host "$3" ;;
      free) await_free "$3" ;;
      *) sed -n '2,11p' "$here" >&2; exit 2 ;;
    esac
    ;;
  --installation) find_installation ;;
  *) run_all "$@" ;;
esac
