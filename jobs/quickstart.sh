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

minutes() { if [ "$1" = 1 ]; then echo '1 minute'; else echo "$1 minutes"; fi; }

# Called by the set-up with the packages that it will install: prints what the quick start does and about how long that takes, on cores of 3 GHz and
# with 100 Mbit/s.
announce() {
  local part='    %-9s %s\n' jobs bytes core_minutes=10
  if [ -z "$found_libtorch" ] && [ -n "${HORTATOR_NO_INSTALL:-}" ]; then return 0; fi
  jobs=$(build_jobs)
  log 'the quick start has these parts, and takes about this time on idle cores:'
  # shellcheck disable=SC2059
  {
    if [ -n "$1" ]; then printf "$part" packages '1 minute; they are listed below'; fi
    if [ -z "$found_libtorch" ]; then
      bytes=$(missing_wheels "${build_wheels[@]}" | awk '{ bytes += $1 } END { print bytes + 0 }')
      printf "$part" LibTorch "$(minutes $((bytes / 750000000 + 1))), a download of $((bytes / 1000000)) MB${1:+ beside the packages}"
    fi
    if [[ "${CXX:-$1}" == *clang* ]] || { [ -z "${CXX:-}" ] && newest_clang >/dev/null; }; then core_minutes=6; fi
    if [ -x "$build/bin/gpt" ]; then
      printf "$part" build 'only what has changed since the last one'
    else
      printf "$part" build "$(minutes $(((core_minutes + jobs - 1) / jobs))) with $jobs compiler processes"
    fi
    printf "$part" training "$(minutes $((ranks > jobs ? ranks / jobs : 1))) on $ranks ranks"
  }
}

# Trains to the middle, stops on purpose, and resumes from the checkpoint.
train() {
  local run=$1 steps=300
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
  log 'The command hortator on PATH, from here or from an installation:'
  echo "  export PATH=$build/bin:\$PATH
  cmake --install ${build#"$root"/} --prefix ~/hortator && export PATH=~/hortator/bin:\$PATH"
  log 'Next steps:'
  echo "  hortator launch -n $ranks $program/gpt --text FILES... --run-dir runs/mine    your own text
  hortator new spiral                 a project of your own; share/doc/tutorial.md continues with it
  ./jobs/quickstart.sh --ranks 4      with more ranks
  $program/gpt --help                 the program's options
  ./tests/run.sh                      all tests"
}

set_up
cd "$root"
train runs/quickstart
summary runs/quickstart
