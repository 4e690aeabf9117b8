#!/usr/bin/env bash
# `hortator new`: the project builds, against the build tree whose `hortator` is on PATH, and trains; its job.sh submits a job.
#   new.sh BUILD_DIR CXX
set -euo pipefail
build=$1
export CXX=$2
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=tests/setup/support.sh
. "$here/../setup/support.sh"
cd "$scratch"
export PATH=$build/bin:$PATH
for name in $(compgen -e | grep -E '^(SLURM|PBS|HORTATOR)_' || true); do unset "$name"; done
export HOME=$scratch

# shellcheck disable=SC2016
for name in 2nd 'a b' 'a;b' -x test all hortator '' ../up 'x$(touch owned)'; do
  run hortator new -- "$name"
  expect_code 2
done
expect_absent owned
run hortator new spiral
expect_code 0
expect_line 'spiral is ready'
run hortator new spiral
expect_code 2
expect_line "'spiral' already exists"

cd spiral
! grep -rnE '@[a-z_]+@' . || wrong 'a placeholder was not replaced'
# The commands of its README, plus the path, because a build tree is not an installation.
cmake -S . -B build "-DCMAKE_PREFIX_PATH=$build" >../log 2>&1 || wrong "$(cat ../log)"
cmake --build build >../log 2>&1 || wrong "$(cat ../log)"
run hortator launch -n 2 build/spiral
expect_code 0
percent=$(grep -oE '[0-9.]+ % right in the last epoch' <<<"$output" | head -n 1 | cut -d ' ' -f 1)
awk -v percent="$percent" 'BEGIN { exit !(percent > 95) }' || wrong "only '$percent' % are right"
[ -d runs/spiral/checkpoint ] || wrong 'the checkpoint is missing'
run hortator launch -n 2 build/spiral
expect_code 0

# job.sh submits it to the scheduler, with the modules that are loaded here
mkdir ../bin
cat >../bin/sbatch <<SH
#!/bin/sh
for script; do :; done
cp "\$script" "$scratch/job"
echo 41
SH
chmod +x ../bin/sbatch
PATH=$scratch/bin:$PATH LOADEDMODULES=site/1:hortator/0.1 run ./job.sh
expect_code 0
expect_line 'submitted: 41'
grep -q 'hortator/0.1' "$scratch/job" || wrong "the job does not load the module: $(cat "$scratch/job")"
grep -q 'build/spiral' "$scratch/job" || wrong 'the job does not start the program'
grep -q -- '--time=01:00:00' "$scratch/job" || wrong 'the job has no time limit'
PATH=$scratch/bin:$PATH run ./job.sh --nodes 2 --ranks-per-node 8 --time 02:00:00
expect_code 0
grep -q -- '--time=02:00:00' "$scratch/job" || wrong "the options are not in the job: $(cat "$scratch/job")"
