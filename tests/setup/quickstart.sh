#!/usr/bin/env bash
# The whole quickstart: the small GPT learns, stops halfway on purpose and resumes, and every path in the closing summary exists.
#   quickstart.sh PROGRAMS LIBTORCH    the folders of the built programs and of their LibTorch, so that the test need not build them again
set -euo pipefail
programs=$1 libtorch=$2
# shellcheck source=tests/setup/support.sh
. "$(dirname "$0")/support.sh"
copy_tree
cp "$source_tree/CMakePresets.json" "$tree"  # its checksum is part of the configuration's stamp

mkdir -p "$tree/build/release" "$scratch/bin"
ln -s "$programs" "$tree/build/release/bin"
cat >"$scratch/bin/cmake" <<SH
#!/bin/sh
case \$1 in -P | --version) exec '$(command -v cmake)' "\$@" ;; *) echo "left out: cmake \$*" ;; esac
SH
chmod +x "$scratch/bin/cmake"

# mean COMMAND...: the mean loss over the lines of loss.csv that COMMAND selects, without the header
mean() { tail -n +2 "$run/loss.csv" | "$@" | awk -F, '{ sum += $2 } END { print sum / NR }'; }
below() { awk -v a="$1" -v b="$2" 'BEGIN { exit !(a < b) }'; }

run env HORTATOR_NO_INSTALL=1 "LIBTORCH=$libtorch" "PATH=$scratch/bin:$PATH" "$tree/jobs/quickstart.sh"
expect_code 0
run=$tree/runs/quickstart

expect_line '^stopped after step 300 as requested'
expect_line ' loaded .*/checkpoint$'
expect_line ' resumes at step 300 of 600$'
steps=$(tail -n +2 "$run/loss.csv" | cut -d , -f 1)
[ "$steps" = "$(seq 600)" ] || wrong 'loss.csv does not have the steps 1 to 600, each once'
# nats per byte: guessing gives ln 256 = 5.55; a model that only counts characters stays near 3
first=$(sed -n 2p "$run/loss.csv" | cut -d , -f 2)
last=$(mean tail -n 20)
below 5 "$first" || wrong "the first loss is $first: an untrained model is above 5"
below "$last" 2.5 || wrong "the last loss is $last: a model that has learned is below 2.5"

for file in checkpoint/manifest.json checkpoint/state.h5; do [ -s "$run/$file" ] || wrong "$file is missing in the run folder"; done
expect_line '^held-out text: [0-9.]+ nats per byte'
expect_line 'done\. Results:'
while read -r path _; do [ -e "$tree/$path" ] || wrong "the summary names $path, which does not exist"; done < <(grep -aE '^ +runs/' <<<"$output")
