#!/usr/bin/env bash
# Sets everything up, then trains a small GPT on several ranks, stops it half way, resumes it, and lets it write a few lines.
set -euo pipefail
# shellcheck source=share/setup/setup.sh
. "$(dirname "${BASH_SOURCE[0]}")/../share/setup/setup.sh"

usage() {
  echo 'usage: ./jobs/quickstart.sh [option...]    from a fresh clone to a model that trains, stops and resumes'
  # shellcheck disable=SC2059
  printf "$shared_usage" 'MPI ranks that train (default 2)'
  echo '
environment: HORTATOR_NO_INSTALL=1 never installs nor downloads; LIBTORCH names the torch folder of a LibTorch to use'
}
parse_options "$@"
ranks=${ranks:-2}

set_up
cd "$root"
run=runs/quickstart
gpt=("$build/bin/hortator" launch -n "$ranks" "$build/bin/gpt" --run-dir "$run")

# The run before this one is kept once: nothing that a user has made is lost at a keystroke.
if [ -d "$run" ]; then rm -rf "$run.previous" && mv "$run" "$run.previous"; fi
mkdir -p "$run"

say "training a small GPT on $ranks ranks; it stops on purpose half way"
"${gpt[@]}" --stop-half-way
say 'resuming from the checkpoint'
"${gpt[@]}" --resume

say 'done. what lies where, and what to try next:'
echo "  $run/                    checkpoints and log
  ./jobs/quickstart.sh --ranks 4      more ranks
  ${build#"$root"/}/bin/gpt --help        the program's own options
  ./tests/run.sh                      all tests"
