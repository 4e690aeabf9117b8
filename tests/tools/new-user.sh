#!/usr/bin/env bash
# What a new user does: clones, sets up, installs, and follows the tutorial literally, to an own program on two ranks. Fails if that takes longer
# than 15 minutes on a machine with the prerequisites.
#   tests/tools/new-user.sh [--prefix DIR]     DIR: an installation to use instead of building one
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
command -v python3 >/dev/null || { echo 'skipped: python3 is not installed'; exit 77; }
prefix=''
if [ "${1:-}" = --prefix ]; then prefix=$2; fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
begin=$SECONDS
if [ -z "$prefix" ]; then
  prefix=$work/hortator
  git clone -q "$root" "$work/clone"
  # downloads count as prerequisites: they depend on the network
  [ ! -d "$root/.deps" ] || ln -s "$root/.deps" "$work/clone/.deps"
  HORTATOR_NO_INSTALL=1 "$work/clone/share/setup/setup.sh" --prefix "$prefix"
  echo "set up in $((SECONDS - begin)) s"
fi
mkdir "$work/home"
python3 "$root/tests/guide/pages.py" run "$root" "$prefix" "$work/home" tutorial
minutes=$(((SECONDS - begin + 59) / 60))
echo "from the clone to the end of the tutorial: $minutes min"
[ "$minutes" -le 15 ] || { echo 'a new user would need more than 15 minutes' >&2; exit 1; }
