#!/usr/bin/env bash
# Runs a command in a fresh clone of the project on a bare Debian (12 bookworm, or 13 trixie): a new root file system with only the base
# system and certificates, like the machine of a new user. Needs root and debootstrap. The base system is kept and reused.
#   fresh-machine.sh [--keep] [--suite bookworm|trixie] REPO COMMAND [ARG...]    e.g. tests/tools/fresh-machine.sh . ./tests/run.sh
# Only what is committed is in the clone; --keep keeps the root file system for inspection.
set -euo pipefail
keep=0 suite=bookworm
while :; do
  case "${1:-}" in
    --keep) keep=1; shift ;;
    --suite) suite=$2; shift 2 ;;
    *) break ;;
  esac
done
[ $# -ge 2 ] || { sed -n '2,5p' "$0" >&2; exit 2; }
repo=$(cd "$1" && git rev-parse --show-toplevel); shift
command -v debootstrap >/dev/null || { apt-get update -qq; apt-get install -y -qq debootstrap >/dev/null; }

base=${FRESH_BASE:-/var/tmp/fresh-$suite.tar}
if [ ! -s "$base" ]; then
  seed=$(mktemp -d /var/tmp/seed.XXXXXX)
  debootstrap --variant=minbase --include=ca-certificates,git "$suite" "$seed/root" >"$seed/log" 2>&1 || { tail -n 5 "$seed/log" >&2; exit 1; }
  tar -C "$seed/root" -cf "$base.part" . && mv "$base.part" "$base"
  rm -rf "$seed"
fi

root=$(mktemp -d /var/tmp/fresh.XXXXXX)
cleanup() {
  for m in run/netns dev/shm dev/pts dev proc sys/fs/cgroup sys .; do if mountpoint -q "$root/$m"; then umount -l "$root/$m" || true; fi; done
  if [ "$keep" = 1 ]; then echo "kept: $root" >&2; else rm -rf --one-file-system "$root"; fi
}
trap cleanup EXIT
tar -C "$root" -xf "$base"
mount --bind "$root" "$root"  # a mount point for /, without which unshare --mount and ip netns fail inside
mkdir -p "$root/dev/shm" "$root/dev/pts"
mount -t proc proc "$root/proc"
mount -t sysfs sysfs "$root/sys"
mount --rbind /sys/fs/cgroup "$root/sys/fs/cgroup"
mount --bind /dev "$root/dev"
mount -t devpts devpts "$root/dev/pts"
mount -t tmpfs -o mode=1777 tmpfs "$root/dev/shm"
cp -L /etc/resolv.conf /etc/hosts "$root/etc/"
cp -L --remove-destination /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/"
git clone -q "$repo" "$root/hortator"
# the site's certificates, mirrors and proxies apply inside as well
site=()
while IFS= read -r setting; do site+=("$setting"); done < <(env | grep -E '^(PIP_INDEX_URL|PIP_EXTRA_INDEX_URL|https?_proxy|no_proxy|HORTATOR_NO_INSTALL|CI)=' || true)
env -i "${site[@]}" HOME=/root TERM="${TERM:-dumb}" LANG=C.UTF-8 PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
  SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt PIP_CERT=/etc/ssl/certs/ca-certificates.crt REQUESTS_CA_BUNDLE=/etc/ssl/certs/ca-certificates.crt \
  chroot "$root" bash -c 'cd /hortator && exec "$@"' fresh "$@"
