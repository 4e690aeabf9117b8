#!/usr/bin/env bash
# Runs on a machine with a GPU: the tests with the label gpu, the benchmarks, and compute-sanitizer on the tests that write to memory shared by
# GPU and host. Continues after a failure. Writes all output to the folder OUT, and the line for the table of share/doc/gpu.md to
# OUT/summary.txt.
#   tests/tools/gpu-session.sh [PART...] [--out OUT]     with the programs of a build: BUILD=build/gpu
#   FOLDER/gpu-session.sh [PART...] [--out OUT]          with those of a folder that gpu-bundle.sh has written
# PART: tests, sanitize, bench; default: all, in this order. LIMIT: time limit of one program in seconds (240).
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
out=gpu-session parts=()
while [ $# -gt 0 ]; do
  case $1 in
    --out) out=$2; shift ;;
    tests | sanitize | bench) parts+=("$1") ;;
    *) sed -n '2,7s/^# *//p' "$0"; exit 2 ;;
  esac
  shift
done
if [ ${#parts[@]} = 0 ]; then parts=(tests sanitize bench); fi
mkdir -p "$out"
out=$(cd "$out" && pwd)

if [ -d "$here/bin" ]; then
  tests=$here/bin bench=$here/bin/hortator-bench
  torch=$(python3 -c 'import os, torch; print(os.path.dirname(torch.__file__))')
  export LD_LIBRARY_PATH=$torch/lib:$here/lib
  for folder in "$torch"/../nvidia/*/lib "$torch"/../nvidia/*/lib64; do
    if [ -d "$folder" ]; then LD_LIBRARY_PATH+=:$folder; fi
  done
  # Open MPI searches its plugins where it was installed, unless these variables are set.
  export OPAL_PREFIX=$here/mpi OMPI_MCA_mca_base_component_path=$here/mpi/parts OMPI_MCA_btl=self,vader OMPI_MCA_pml=ob1
  export OMPI_MCA_ess_singleton_isolated=1 OMPI_MCA_orte_silence_shared_fs=1 OMPI_MCA_plm_rsh_agent=false
  PATH=$here/bin:$PATH
else
  build=$(cd "${BUILD:-build/gpu}" && pwd) || exit 2
  tests=$build/tests bench=$build/libexec/hortator/hortator-bench
fi
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMP_NUM_THREADS=${OMP_NUM_THREADS:-4}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 2

failed=0 results=()
run() {  # PART COMMAND...
  local part=$1 begin=$SECONDS ending
  shift
  {
    echo "== $*"
    timeout -k 10 "${LIMIT:-240}" "$@" 2>&1
    echo "== exit code $?"
    echo
  } | tee "$work/latest"
  cat "$work/latest" >>"$out/$part.txt"
  ending=$(sed -n 's/^== exit code //p' "$work/latest")
  if [ "$ending" != 0 ]; then
    failed=1 ending="failed with code $ending"
  elif grep -q '^skipped: no CUDA device' "$work/latest"; then
    failed=1 ending='skipped: no device'
  else
    ending='good'
  fi
  results+=("$part: $ending after $((SECONDS - begin)) s: ${*##*/}")
}

facts() {
  nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader
  strings -n 8 "$bench" 2>/dev/null | grep -m1 -E '^[0-9]+\.[0-9]+\.[0-9]+\+cu' || true
  ldd "$bench" 2>/dev/null | awk '/libtorch_cuda|libnccl|libcudart/ {print $3}'
  uname -sr
  nproc
}
facts >"$out/facts.txt" 2>&1

run_tests() {
  for program in test_nccl_gpu test_gpu test_gpu_waits; do run tests "$tests/$program" -d yes; done
  for ranks in 2 4; do run tests mpirun -n "$ranks" --oversubscribe "$tests/test_gpu_shared" -d yes; done
}

# Hortator has no kernels of its own; memcheck is for memory that both host and GPU write. It sees no streams, and racecheck sees only the memory that
# the threads of one kernel share: a wait between streams that is missing is found by HORTATOR_DEBUG_STREAMS.
run_sanitize() {
  run sanitize compute-sanitizer --tool memcheck --error-exitcode 1 "$tests/test_gpu" 'a graph replays*,a loss on the device*,batches arrive*'
  run sanitize env HORTATOR_DEBUG_STREAMS=1 "$bench" step --case mlp-small
}

run_bench() {
  # each with its counterpart in eager PyTorch, if Python has torch
  run bench "$bench" step --case mlp-small --json
  run bench python3 "$here/eager-step.py" mlp-small
  run bench env HORTATOR_MIXED_PRECISION=bf16 "$bench" step --case gpt-124m --blocks 10 --steps 10 --json
  run bench python3 "$here/eager-step.py" gpt-124m --precision bf16 --blocks 10 --steps 10
  run bench "$bench" capture --case mlp-small
  run bench env HORTATOR_MIXED_PRECISION=bf16 "$bench" capture --case gpt-124m --blocks 10 --steps 10
  run bench "$bench" loop
  run bench "$bench" checkpoint --case stall --size 4GiB --blocks 5
}

for part in "${parts[@]}"; do
  case $part in
    tests) run_tests ;;
    sanitize) run_sanitize ;;
    bench) run_bench ;;
  esac
done
{
  head -1 "$out/facts.txt"
  printf '%s\n' "${results[@]}"
} | tee "$out/summary.txt"
exit $failed
