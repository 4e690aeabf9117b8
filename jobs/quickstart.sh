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

# The main job: trains half way, stops on purpose, and goes on from the checkpoint.
train() {
  local run=$1 steps=600
  local gpt=("$build/bin/hortator" launch -n "$ranks" "$build/bin/gpt" --run-dir "$run" --steps "$steps" --batch-size $((16 * ranks)))

  # the run before this one is kept once: nothing that a user has made is lost at a keystroke
  if [ -d "$run" ]; then
    rm -rf "$run.previous"
    mv "$run" "$run.previous"
    say "the run before this one now lies in $run.previous"
  fi
  say "training a small GPT on $ranks ranks; it stops on purpose half way"
  "${gpt[@]}" --stop-after $((steps / 2))
  say 'the same command again resumes from the checkpoint'
  "${gpt[@]}"
}

summary() {
  local run=$1 program=${build#"$root"/}/bin
  say 'done. What lies where:'
  echo "  $run/checkpoint    model, optimizer and position in the data, in parallel HDF5
  $run/loss.csv      the loss of every step"
  say 'What to try next:'
  echo "  $program/hortator launch -n $ranks $program/gpt --text FILES... --run-dir runs/mine    your own text
  ./jobs/quickstart.sh --ranks 4      more ranks
  $program/gpt --help                 the program's options
  ./tests/run.sh                      all tests"
}

set_up
cd "$root"
train runs/quickstart
summary runs/quickstart
