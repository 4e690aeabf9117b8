#!/usr/bin/env bash
# The check of the room rules accepts what they allow and rejects what they forbid.
set -euo pipefail
# shellcheck source=tests/setup/support.sh
. "$(dirname "$0")/support.sh"
command -v git >/dev/null || { echo 'skipped: git is not here'; exit 77; }

cd "$scratch"
git init -q .
mkdir -p .ci
cp -r "$source_tree/.ci/checks" .ci
sed -i '/^circle /d' .ci/checks/rooms.txt # the trees below have only their own

# judge FILE INCLUDE: runs the check on a tree with only this file and include
judge() {
  rm -rf src include share
  mkdir -p "$(dirname "$1")"
  echo "#include $2" >"$1"
  git add -A
  run .ci/checks/rooms.sh
}
# judge_line FILE LINE: the same, with this line
judge_line() {
  rm -rf src include share
  mkdir -p "$(dirname "$1")"
  printf "#include <vector>\n%s\n" "$2" >"$1"
  git add -A
  run .ci/checks/rooms.sh
}
allowed() { judge "$@"; [ "$code" = 0 ] || wrong "$1 may include $2"; }
refused() { judge "$@"; [ "$code" != 0 ] || wrong "$1 must not include $2"; expect_line "$1:1: .*$2"; }

allowed src/comm/bucket.cpp '"mpi/agree.hpp"'
allowed src/comm/bucket.cpp '"comm/work.hpp"'
allowed src/step/model/model.cpp '"formats/file/raw_file.hpp"' # step -> parallel -> paging -> formats
allowed src/accelerator/accelerator.cpp '"core/text/text.hpp"'
allowed src/core/text/text.cpp '<hortator/error.hpp>'
allowed src/core/text/text.cpp '<c10/util/Half.h>'
refused src/core/text/text.cpp '"mpi/agree.hpp"'
refused src/mpi/agree.cpp '"runtime/identity/launcher.hpp"'
refused src/step/model/model.cpp '"data/sampler.hpp"'
refused src/step/model/model.cpp '"checkpoint/write/plan.hpp"'
refused src/data/loader/loader.cpp '"step/model/model.hpp"'
refused src/data/loader/loader.cpp '"checkpoint/write/plan.hpp"'
refused src/checkpoint/write/plan.cpp '"data/sampler.hpp"'
refused src/checkpoint/write/plan.cpp '"step/model/model.hpp"'
refused src/attic/old.cpp '<vector>'
allowed share/bench/report.cpp '"tools/verbs.hpp"'
allowed share/bench/report.cpp '"step/model/model.hpp"'
refused src/tools/verbs.cpp '"bench/report.hpp"'
refused src/accelerator/accelerator.cpp '"bench/report.hpp"'

allowed src/mpi/native.hpp '<mpi.h>'
allowed src/comm/mpi/mpi_datatype.hpp '<mpi.h>'
allowed src/comm/shm/peer_groups.cpp '"mpi/native.hpp"'
refused src/mpi/agree.cpp '<mpi.h>'
refused src/comm/shm/window.cpp '"mpi/native.hpp"'
allowed src/formats/hdf5/file.cpp '<hdf5.h>'
allowed src/comm/nccl/communicator.cpp '<nccl.h>'
refused src/comm/communicator.cpp '<mpi.h>'
refused share/bench/report.cpp '<mpi.h>'
refused src/step/model/model.cpp '<mpi.h>'
refused src/comm/mpi/mpi_communicator.cpp '<nccl.h>'
refused src/checkpoint/writer.cpp '<hdf5.h>'
refused include/hortator/hortator.hpp '<mpi.h>'

# standard MPI only
judge_line src/mpi/agree.cpp 'MPIX_Query_cuda_support();'
[ "$code" != 0 ] || wrong 'a call that only Open MPI has is accepted'
expect_line 'src/mpi/agree.cpp:2: *MPIX_Query_cuda_support'
expect_line 'not standard MPI\. Files that may use it: none'
judge_line src/comm/mpi/mpi_communicator.cpp 'std::getenv("OMPI_COMM_WORLD_RANK");'
[ "$code" != 0 ] || wrong "the launcher's variables may be read anywhere"
judge_line src/runtime/identity/launcher.cpp 'std::getenv("OMPI_COMM_WORLD_RANK");'
expect_code 0
judge_line src/mpi/agree.cpp 'MPI_Allreduce(); PMI_RANK; // no COMPI_X'
expect_code 0

# a folder holds at most 35 sources
fill() { # FOLDER NUMBER: judges a folder of that many sources
  rm -rf src include share tests
  mkdir -p "$1" src/mpi
  echo "#include <vector>" >src/mpi/other.cpp
  for i in $(seq "$2"); do echo "#include <vector>" >"$1/source_$i.cpp"; done
  git add -A
  run .ci/checks/rooms.sh
}
for folder in src/core tests/unit/core; do
  fill "$folder" 35
  expect_code 0
  fill "$folder" 36
  [ "$code" != 0 ] || wrong 'a folder of 36 sources is accepted'
  expect_line "$folder: 36 sources"
done
rm -rf tests

# circles of folders: none but those that are listed, and these must be there
judge_circles() { # CIRCLE FROM:TO...: runs the check with this circle in the list, if it is not empty, on folders that include each other like this
  rm -rf src include share
  sed -i '/^circle /d' .ci/checks/rooms.txt
  [ -z "$1" ] || echo "circle  $1" >>.ci/checks/rooms.txt
  local arrow to
  for arrow in "${@:2}"; do
    to=${arrow#*:}
    mkdir -p "src/${arrow%:*}"
    echo "#include \"$to/part.hpp\"" >>"src/${arrow%:*}/${to##*/}.cpp"
  done
  git add -A
  run .ci/checks/rooms.sh
}
judge_circles '' step:step/schedule step/schedule:step/metrics step:step/metrics
expect_code 0
judge_circles '' step:step/schedule step/schedule:step/metrics step/metrics:step step/metrics:parallel/mesh
[ "$code" != 0 ] || wrong 'a circle of three folders is accepted'
expect_line '^src/step/metrics/step.cpp:1:#include "step/part.hpp"'
expect_no_line 'parallel/mesh'
expect_line '^circle  step step/metrics step/schedule$'
judge_circles 'step step/schedule step/metrics' step:step/schedule step/schedule:step/metrics step/metrics:step
expect_code 0
judge_circles 'step step/metrics' step:step/schedule step/schedule:step/metrics step/metrics:step
[ "$code" != 0 ] || wrong 'a known circle may grow'
expect_line '^src/step/schedule/metrics.cpp:1'
expect_no_line 'metrics/step.cpp'
judge_circles 'step step/schedule step/metrics' step:step/schedule step/schedule:step step/schedule:step/metrics
[ "$code" != 0 ] || wrong 'a circle stays in the list when a folder has left it'
expect_line 'only: circle  step step/schedule$'
judge_circles 'step step/schedule' step:step/schedule
[ "$code" != 0 ] || wrong 'a circle stays in the list when it is gone'
expect_line 'only: nothing$'
