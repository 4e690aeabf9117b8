#!/usr/bin/env bash
# light.sh BEFORE AFTER [FOLDER]: how long two commits of the project take on this machine, which should have nothing else to do: the quick start from
# nothing, everything built with the tests, the default test run, and .ci/run as a whole. Nothing is taken from a compiler cache. Downloads are
# made once, before. Prints a row for each, with the ratio. FOLDER (default: a new one) keeps the clones and their logs.
set -euo pipefail
if [ $# -lt 2 ]; then sed -n '2,4s/^# //p' "$0"; exit 2; fi
here=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
before=$1 after=$2
folder=${3:-$(mktemp -d)}
mkdir -p "$folder"
export CCACHE_DISABLE=1 CCACHE_RECACHE=1

# clone COMMIT NAME: a clone with the downloads of this folder, and without anything built
clone() {
  rm -rf "${folder:?}/$2"
  git clone -q "$here" "$folder/$2"
  git -C "$folder/$2" checkout -q "$1"
  [ ! -d "$here/.deps" ] || cp -al "$here/.deps" "$folder/$2/.deps"
}
# timed LOG COMMAND...: its seconds; ends this script where it fails
timed() {
  local began=$SECONDS
  "${@:2}" >"$folder/$1" 2>&1 || { echo "failed: ${*:2}; see $folder/$1" >&2; return 1; }
  echo $((SECONDS - began))
}
# Where the tests begin, ctest says so: the seconds of the set-up and the build, then those of the tests.
parts() {
  local began=$SECONDS built=0
  while read -r line; do
    [[ $line != 'Test project '* ]] || built=$((SECONDS - began))
    echo "$line"
  done < <(cd "$1" && ./tests/run.sh 2>&1; echo "exit code $?") >"$folder/$2"
  [ "$(tail -n 1 "$folder/$2")" = 'exit code 0' ] || echo "tests of $1 failed; see $folder/$2" >&2
  echo "$built $((SECONDS - began - built))"
}

declare -A seconds
for which in before after; do
  commit=${!which}
  clone "$commit" "$which.quickstart"
  seconds[$which.quickstart]=$(cd "$folder/$which.quickstart" && timed "$which.quickstart.log" ./jobs/quickstart.sh)
  rm -rf "${folder:?}/$which.quickstart"
  clone "$commit" "$which.tests"
  # shellcheck disable=SC2016  # for the other shell
  seconds[$which.checks]=$(cd "$folder/$which.tests" && timed "$which.checks.log" bash -c \
    './share/setup/setup.sh --tests --only-deps; for check in .ci/checks/*.sh; do "$check" || true; done; ./tests/tools/house.sh || true')
  read -r seconds[$which.build] seconds[$which.tests] < <(parts "$folder/$which.tests" "$which.tests.log")
  seconds[$which.ci]=$((seconds[$which.checks] + seconds[$which.build] + seconds[$which.tests]))
done
printf '%-12s %10s %10s %8s\n' '' "${before:0:10}" "${after:0:10}" ratio
for part in quickstart build tests ci; do
  awk -v part="$part" -v a="${seconds[before.$part]}" -v b="${seconds[after.$part]}" 'BEGIN { printf "%-12s %8d s %8d s %8.2f\n", part, a, b, b / a }'
done
