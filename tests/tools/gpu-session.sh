#!/usr/bin/env bash
# Runs on a machine with a GPU: the tests with the label gpu, programs whose results are compared with the CPU's, the benchmarks, and
# compute-sanitizer on the tests that write to memory shared by GPU and host. Continues after a failure. Writes all output to the folder OUT, and the line for the table of share/doc/gpu.md to
# OUT/summary.txt.
#   tests/tools/gpu-session.sh [PART...] [--out OUT]     with the programs of a build: BUILD=build/gpu
#   FOLDER/gpu-session.sh [PART...] [--out OUT]          with those of a folder that gpu-bundle.sh has written
# PART: tests, programs, sanitize, bench; default: all, in this order. LIMIT: time limit of one program in seconds (240).
# shellcheck disable=SC2317  # run() calls functions by their names
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
out=gpu-session parts=()
while [ $# -gt 0 ]; do
  case $1 in
    --out) out=$2; shift ;;
    tests | programs | sanitize | bench) parts+=("$1") ;;
    *) sed -n '2,7s/^# *//p' "$0"; exit 2 ;;
  esac
  shift
done
if [ ${#parts[@]} = 0 ]; then parts=(tests programs sanitize bench); fi
mkdir -p "$out"
out=$(cd "$out" && pwd)

if [ -d "$here/bin" ]; then
  tests=$here/bin bench=$here/bin/hortator-bench programs=$here/bin verbs=$here/bin text=$here/text.md exported=$here/exported
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
  tests=$build/tests bench=$build/libexec/hortator/hortator-bench programs=$build/bin verbs=$build/libexec/hortator
  text=$here/../../share/doc/from-accelerate.md exported=$here/../unit/exported/files
fi
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMP_NUM_THREADS=${OMP_NUM_THREADS:-4}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 2

# Runs a command, or a function of this script, which limits its commands itself.
limited() {
  if [ "$(type -t "$1")" = function ]; then "$@"; else timeout -k 10 "${LIMIT:-240}" "$@"; fi
}
env_with() {  # NAME=VALUE FUNCTION...
  local -x "${1?}"
  "${@:2}"
}

failed=0 results=()
run() {  # PART COMMAND...
  local part=$1 begin=$SECONDS ending
  shift
  {
    echo "== $*"
    limited "$@" 2>&1
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

# A small Llama with random weights that trains on bytes.
language_model() {  # RUN_DIR [OPTION...]
  limited "${launch[@]}" "$programs/language_model" --model llama --random-weights --bytes --text "$text" --steps 30 --context-length 128 --learning-rate 1e-3 \
    --run-dir "$@"
}

same_losses() {  # RUN_DIR RUN_DIR: within 1e-5
  paste -d, "$1/loss.csv" "$2/loss.csv" |
    awk -F, 'NR > 1 { d = $2 - $4; if (d < 0) d = -d; if (d > most) most = d } END { print "largest difference " most; exit !(NR == 31 && most < 1e-5) }'
}

trains_as() {  # RUN_DIR EXPECTED_RUN_DIR [OPTION...]
  language_model "$1" "${@:3}" && same_losses "$1" "$2"
}

stops_when_asked() {
  local code=0 pid
  rm -rf stopped
  "$programs/language_model" --model llama --random-weights --bytes --text "$text" --steps 100000 --run-dir stopped &
  pid=$!
  while ! grep -qs , stopped/loss.csv && kill -0 "$pid"; do sleep 0.2; done
  sleep 1
  kill -TERM "$pid"
  wait "$pid" || code=$?
  echo "exit code $code"
  [ "$code" = 75 ] && [ -d stopped/checkpoint ]
}

same_outputs() {  # MODEL: of the device and the CPU within 1e-5
  local inputs="--model $exported/$1.pt2 --inputs $exported/$1.safetensors"
  # shellcheck disable=SC2086
  "$programs/exported" $inputs --outputs device.safetensors && "$programs/exported" $inputs --outputs cpu.safetensors --cpu &&
    python3 - <<'PY'
import array
import json


def tensors(path):
    data = open(path, "rb").read()
    size = int.from_bytes(data[:8], "little")
    for name, one in sorted(json.loads(data[8:8 + size]).items()):
        if name != "__metadata__":
            begin, end = one["data_offsets"]
            yield name, array.array({"F32": "f", "F64": "d", "I64": "q"}[one["dtype"]], data[8 + size + begin:8 + size + end])


for (name, x), (_, y) in zip(tensors("device.safetensors"), tensors("cpu.safetensors"), strict=True):
    most = max((abs(a - b) for a, b in zip(x, y, strict=True)), default=0)
    print(f"{name}: largest difference {most}")
    assert most < 1e-5
PY
}

run_programs() {
  local options name launch=()
  mkdir -p llama
  cat >llama/config.json <<'JSON'
{"model_type": "llama", "architectures": ["LlamaForCausalLM"], "vocab_size": 256, "hidden_size": 128, "intermediate_size": 344,
 "num_hidden_layers": 3, "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 512, "rms_norm_eps": 1e-05,
 "rope_theta": 10000.0, "hidden_act": "silu", "tie_word_embeddings": true, "initializer_range": 0.02}
JSON
  run programs "$verbs/hortator-doctor"
  run programs "$verbs/hortator-test"
  run programs language_model cpu --cpu
  run programs trains_as device cpu
  run programs env_with HORTATOR_DEBUG_STREAMS=1 trains_as watched cpu
  run programs language_model resumed --zero 3 --stop-after 15
  run programs trains_as resumed device --zero 3
  launch=(mpirun -n 2 --oversubscribe)
  for options in '--zero 1' '--zero 3' '--tensor 2' '--context 2'; do
    name=shared${options// /}
    # shellcheck disable=SC2086
    run programs env_with HORTATOR_SHARE_DEVICES=1 trains_as "$name" device $options
  done
  launch=()
  run programs stops_when_asked
  for name in mlp attention tied sizes in_place condition nested_outputs; do run programs same_outputs "$name"; done
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
  run bench env HORTATOR_MIXED_PRECISION=bf16 "$bench" loss --case words-50257 --blocks 10 --steps 5
  run bench "$bench" loop
  run bench "$bench" checkpoint --case stall --size 4GiB --blocks 5
}

for part in "${parts[@]}"; do
  case $part in
    tests) run_tests ;;
    programs) run_programs ;;
    sanitize) run_sanitize ;;
    bench) run_bench ;;
  esac
done
{
  head -1 "$out/facts.txt"
  printf '%s\n' "${results[@]}"
} | tee "$out/summary.txt"
exit $failed
