#!/usr/bin/env bash
# The quickstart as a newcomer runs it, whole: the small GPT learns, stops half way on purpose, goes on, and all is where its last words say.
#   quickstart.sh PROGRAMS LIBTORCH    the folders of the programs that are built and of their LibTorch; a build of its own would only repeat theirs
set -euo pipefail
programs=$1 libtorch=$2
# shellcheck source=tests/setup/support.sh
. "$(dirname "$0")/support.sh"
copy_tree
cp "$source_tree/CMakePresets.json" "$tree"  # its checksum is a part of what a configuration is known by

mkdir -p "$tree/build/release" "$scratch/bin"
ln -s "$programs" "$tree/build/release/bin"
cat >"$scratch/bin/cmake" <<SH
#!/bin/sh
case \$1 in -P | --version) exec '$(command -v cmake)' "\$@" ;; *) echo "left out: cmake \$*" ;; esac
SH
chmod +x "$scratch/bin/cmake"

# mean COMMAND...: of the losses in those lines of loss.csv, without its header
mean() { tail -n +2 "$run/loss.csv" | "$@" | awk -F, '{ sum += $2 } END { print sum / NR }'; }
below() { awk -v a="$1" -v b="$2" 'BEGIN { exit !(a < b) }'; }

run env HORTATOR_NO_INSTALL=1 "LIBTORCH=$libtorch" "PATH=$scratch/bin:$PATH" "$tree/jobs/quickstart.sh"
expect_code 0
run=$tree/runs/quickstart

expect_line '^stopped after step 300 as asked'
expect_line ' loaded .*/checkpoint$'
expect_line ' goes on at step 300 of 600$'
steps=$(tail -n +2 "$run/loss.csv" | cut -d , -f 1)
[ "$steps" = "$(seq 600)" ] || wrong 'loss.csv has other steps than 1 to 600, each once'
# nats a byte: guessing is at ln 256 = 5.55; a model that only counts letters stays near 3
first=$(sed -n 2p "$run/loss.csv" | cut -d , -f 2)
last=$(mean tail -n 20)
below 5 "$first" || wrong "the loss begins at $first: what guesses is above 5"
below "$last" 2.5 || wrong "the loss ends at $last: what learns is below 2.5"

for file in checkpoint/manifest.json checkpoint/state.h5; do [ -s "$run/$file" ] || wrong "$file is not in the run"; done
expect_line '^held-out text: [0-9.]+ nats a byte'
expect_line 'done\. What lies where:'
while read -r path _; do [ -e "$tree/$path" ] || wrong "the summary names $path, which is not there"; done < <(grep -aE '^ +runs/' <<<"$output")
