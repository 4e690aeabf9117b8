#!/usr/bin/env bash
# Installs what is missing, builds, trains a small GPT on several ranks, stops halfway, resumes from the checkpoint and prints a sample.
set -euo pipefail
# shellcheck source=share/setup/setup.sh
. "$(dirname "${BASH_SOURCE[0]}")/../share/setup/setup.sh"

usage() {
  echo 'usage: ./jobs/quickstart.sh [option...]    installs what is missing, builds, trains a small GPT, stops halfway and resumes'
  # shellcheck disable=SC2059
  printf "$shared_usage" 'MPI ranks that train (default 2)'
  echo '
environment: HORTATOR_NO_INSTALL=1 installs and downloads nothing; LIBTORCH names the torch folder of the LibTorch to use'
}
parse_options "$@"
ranks=${ranks:-2}

# Trains to the middle, stops on purpose, and resumes from the checkpoint.
train() {
  local run=$1 steps=600
  local gpt=("$build/bin/hortator" launch -n "$ranks" "$build/bin/gpt" --run-dir "$run" --steps "$steps" --batch-size $((16 * ranks)))

  # keep the previous run: repeating the command must not delete a user's results
  if [ -d "$run" ]; then
    rm -rf "$run.previous"
    mv "$run" "$run.previous"
    log "the previous run is now in $run.previous"
  fi
  log "training a small GPT on $ranks ranks; it stops on purpose halfway"
  "${gpt[@]}" --stop-after $((steps / 2))
  log 'the same command again resumes from the checkpoint'
  "${gpt[@]}"
}

summary() {
  local run=$1 program=${build#"$root"/}/bin
  log 'done. Results:'
  echo "  $run/checkpoint    model, optimizer and position in the data, in parallel HDF5
  $run/loss.csv      the loss of every step"
  log 'Next steps:'
  echo "  $program/hortator launch -n $ranks $program/gpt --text FILES... --run-dir runs/mine    your own text
  ./jobs/quickstart.sh --ranks 4      with more ranks
  $program/gpt --help                 the program's options
  ./tests/run.sh                      all tests"
}

set_up src/all gpt  # no more than it runs, so that it starts soon
cd "$root"
train runs/quickstart
summary runs/quickstart
