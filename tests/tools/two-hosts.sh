#!/usr/bin/env bash
# Simulates several hosts on one machine: network namespaces on a bridge, each with its own host name; they use real TCP with an optional rate
# limit. Runs mpirun over them, then removes them. Needs root, iproute2 and Open MPI. There is no option for delay: not all kernels have netem.
# -c: run a COMMAND that calls mpirun itself, on the first host; the file $HOSTS_FILE lists the hosts with their slots.
#   two-hosts.sh [-N HOSTS] [-r RANKS_A_HOST] [-b RATE] [-c] PROGRAM [ARG...]      e.g. two-hosts.sh -b 1gbit build/release/bin/hortator bench collectives
set -euo pipefail
usage() { sed -n '2,5p' "$0" >&2; exit 2; }
hosts=2 ranks=2 rate='' is_command=0
while getopts N:r:b:c option; do
  case $option in
    N) hosts=$OPTARG ;;
    r) ranks=$OPTARG ;;
    b) rate=$OPTARG ;;
    c) is_command=1 ;;
    *) usage ;;
  esac
done
shift $((OPTIND - 1))
[ $# -ge 1 ] || usage

net=10.$((RANDOM % 200 + 20)).0
bridge=hortator$$
work=$(mktemp -d /var/tmp/two-hosts.XXXXXX)
host() { echo "h$1-$$"; }
take_down() {
  # an interrupted mpirun leaves ranks running
  for i in $(seq "$hosts"); do ip netns pids "$(host "$i")" 2>/dev/null | xargs -r kill -9 || true; done
  for i in $(seq "$hosts"); do ip netns del "$(host "$i")" 2>/dev/null || true; done
  ip link del "$bridge" 2>/dev/null || true
  for i in $(seq "$hosts"); do umount -l "$work/memory/$(host "$i")" 2>/dev/null || true; done
  rm -rf "$work"
}
trap take_down EXIT

ip link add "$bridge" type bridge
ip link set "$bridge" up
cp /etc/hosts "$work/hosts"
places=()
for i in $(seq "$hosts"); do
  name=$(host "$i")
  ip netns add "$name"
  ip link add "v$i-$$" type veth peer name eth0 netns "$name"
  ip link set "v$i-$$" master "$bridge" up
  ip -n "$name" addr add "$net.$i/24" dev eth0
  ip -n "$name" link set eth0 up
  ip -n "$name" link set lo up
  if [ -n "$rate" ]; then tc -n "$name" qdisc add dev eth0 root tbf rate "$rate" burst 256kb latency 50ms; fi
  echo "$net.$i $name" >>"$work/hosts"
  places+=("$name:$ranks")
  mkdir -p "$work/memory/$name"
  mount -t tmpfs -o mode=1777 tmpfs "$work/memory/$name"
done

# Each host has its own network, name, hosts file and /dev/shm, which is memory/NAME beside $HOSTS_FILE. The replacement for ssh passes on as little of the environment as ssh does.
cat >"$work/on" <<EOF
#!/usr/bin/env bash
name=\$1
shift
exec ip netns exec "\$name" unshare --uts --mount bash -c \
  'hostname "\$0"; mount --bind "$work/hosts" /etc/hosts; mount --bind "$work/memory/\$0" /dev/shm; exec bash -c "\$1"' "\$name" "\$*"
EOF
# shellcheck disable=SC2016
printf '#!/usr/bin/env bash\nexec env -i HOME="$HOME" PATH="$PATH" "%s/on" "$@"\n' "$work" >"$work/far"
chmod +x "$work/on" "$work/far"
# Open MPI 5 has the same settings under PRRTE's names.
settings=(plm_rsh_agent="$work/far" plm_rsh_no_tree_spawn=1 btl_tcp_if_include=eth0 oob_tcp_if_include=eth0 btl_base_warn_component_unused=0)
export PRTE_MCA_plm_ssh_agent=$work/far PRTE_MCA_plm_ssh_no_tree_spawn=1 PRTE_MCA_prte_if_include=eth0
if [ $is_command = 1 ]; then
  export "${settings[@]/#/OMPI_MCA_}" HOSTS_FILE=$work/slots OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
  printf '%s\n' "${places[@]/:/ slots=}" >"$HOSTS_FILE"
  arguments=("$@")
else
  arguments=(mpirun --allow-run-as-root)
  for setting in "${settings[@]}"; do arguments+=(--mca "${setting%%=*}" "${setting#*=}"); done
  for name in $(compgen -e | grep -E '^(HORTATOR|OMP)_' || true); do arguments+=(-x "$name"); done
  arguments+=(--oversubscribe --bind-to none -H "$(IFS=,; echo "${places[*]}")" -n $((hosts * ranks)) "$@")
fi
printf -v command '%q ' "${arguments[@]}"
"$work/on" "$(host 1)" "$command" &  # in the background, so that the script handles signals at once
trap 'exit 130' INT TERM
wait $!
