#!/usr/bin/env bash
# Several hosts on one machine: network namespaces on a bridge, each with a name of its own, talking real TCP, whose rate can be limited.
# Runs mpirun over them and takes them down. Needs root, iproute2 and Open MPI. Kernels without netem have no delay to offer.
#   two-hosts.sh [-N HOSTS] [-r RANKS_A_HOST] [-b RATE] PROGRAM [ARG...]      e.g. two-hosts.sh -b 1gbit build/release/bin/hortator bench collectives
set -euo pipefail
usage() { sed -n '2,4p' "$0" >&2; exit 2; }
hosts=2 ranks=2 rate=
while getopts N:r:b: option; do
  case $option in
    N) hosts=$OPTARG ;;
    r) ranks=$OPTARG ;;
    b) rate=$OPTARG ;;
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
  # an mpirun that was interrupted leaves its ranks behind
  for i in $(seq "$hosts"); do ip netns pids "$(host "$i")" 2>/dev/null | xargs -r kill -9 || true; done
  for i in $(seq "$hosts"); do ip netns del "$(host "$i")" 2>/dev/null || true; done
  ip link del "$bridge" 2>/dev/null || true
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
done

# mpirun calls this in place of ssh: a host has its own network, name, hosts file and /dev/shm.
cat >"$work/on" <<EOF
#!/usr/bin/env bash
name=\$1
shift
exec ip netns exec "\$name" unshare --uts --mount bash -c \
  'hostname "\$0"; mount --bind "$work/hosts" /etc/hosts; mount -t tmpfs -o mode=1777 tmpfs /dev/shm; exec bash -c "\$1"' "\$name" "\$*"
EOF
chmod +x "$work/on"
printf -v command '%q ' mpirun --allow-run-as-root --mca plm_rsh_agent "$work/on" --mca plm_rsh_no_tree_spawn 1 \
  --mca btl_tcp_if_include eth0 --mca oob_tcp_if_include eth0 --mca btl_base_warn_component_unused 0 --oversubscribe --bind-to none \
  -H "$(IFS=,; echo "${places[*]}")" -n $((hosts * ranks)) "$@"
"$work/on" "$(host 1)" "$command" &  # so that a signal to this script is acted upon at once
trap 'exit 130' INT TERM
wait $!
