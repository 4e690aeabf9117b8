#!/usr/bin/env bash
# The tests with the label gpu and the benchmarks in one folder, with the libraries that they need beside LibTorch and CUDA: for a machine
# that has a device and Python's torch, and no MPI nor HDF5. They must have been built with the LibTorch that is there.
#   tests/tools/gpu-bundle.sh BUILD FOLDER     e.g. tests/tools/gpu-bundle.sh build/gpu gpu-bundle
# There: FOLDER/run.sh [tests|bench|sanitize], in a writable folder.
set -euo pipefail
if [ $# != 2 ]; then
  sed -n '2,5s/^# *//p' "$0"
  exit 2
fi
build=$1 folder=$2
programs=("$build"/tests/test_gpu "$build"/tests/test_gpu_waits "$build"/tests/test_nccl_gpu "$build"/tests/test_device "$build"/libexec/hortator/hortator-bench)
mkdir -p "$folder/bin" "$folder/lib" "$folder/mpi"
for program in "${programs[@]}"; do
  cp "$program" "$folder/bin/"
  strip "$folder/bin/$(basename "$program")"
done

# What is on the other machine: the C library, LibTorch and all of NVIDIA's.
foreign='/(libtorch|libc10|libcu|libnv|libnccl|libc\.|libm\.|libdl\.|librt\.|libpthread|ld-linux|libgomp|libgfortran)'
copy_needed() {  # FILE...: the libraries that they need
  ldd "$@" 2>/dev/null | awk '$2 == "=>" && $3 ~ /^\// {print $3}' | sort -u | { grep -vE "$foreign" || true; } | while read -r library; do
    cp -Ln "$library" "$folder/lib/"
  done
}
copy_needed "$folder"/bin/*

# Open MPI opens its parts by itself; of one rank these do.
mpi_library=$(ldd "$build/tests/test_gpu" | awk '/libmpi\.so|libopen-pal\.so/ {print $3; exit}')
for parts in "$(dirname "$mpi_library")"/openmpi*/mca "$(dirname "$(readlink -f "$mpi_library")")"/openmpi*/lib/openmpi*; do
  if [ -d "$parts" ]; then
    cp "$parts"/mca_*.so "$folder/mpi/"
    copy_needed "$folder"/mpi/*.so
  fi
done

cat >"$folder/run.sh" <<'END'
#!/usr/bin/env bash
# run.sh tests|bench|sanitize
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
torch=$(python3 -c 'import os, torch; print(os.path.dirname(torch.__file__))')
libraries=$torch/lib:$here/lib
for folder in "$torch"/../nvidia/*/lib; do libraries+=:$folder; done
export LD_LIBRARY_PATH=$libraries OMPI_MCA_mca_base_component_path=$here/mpi OMPI_MCA_ess_singleton_isolated=1 OMPI_MCA_orte_silence_shared_fs=1
export OMPI_MCA_btl=self,vader OMPI_MCA_pml=ob1 OMP_NUM_THREADS=8
failed=0
run() {
  echo "== $*"
  timeout "${LIMIT:-240}" "$@" || { failed=1; echo "== failed with $?: $*"; }
}
case ${1:-tests} in
  tests)
    nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv
    for program in test_device test_nccl_gpu test_gpu test_gpu_waits; do run "$here/bin/$program" -d yes; done ;;
  bench)
    run "$here/bin/hortator-bench" step --case mlp-small
    HORTATOR_MIXED_PRECISION=bf16 run "$here/bin/hortator-bench" step --case gpt-124m --blocks 10 --steps 10
    run "$here/bin/hortator-bench" capture --case mlp-small
    HORTATOR_MIXED_PRECISION=bf16 run "$here/bin/hortator-bench" capture --case gpt-124m --blocks 10 --steps 10
    run "$here/bin/hortator-bench" loop
    run "$here/bin/hortator-bench" checkpoint --case stall --size 4GiB --blocks 5 ;;
  sanitize)
    for tool in memcheck racecheck; do run compute-sanitizer --tool "$tool" --error-exitcode 1 "$here/bin/test_gpu" 'a graph repeats*'; done ;;
esac
exit $failed
END
chmod +x "$folder/run.sh"
du -sh "$folder"
