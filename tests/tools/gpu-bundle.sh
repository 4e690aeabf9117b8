#!/usr/bin/env bash
# Collects the tests with the label gpu and the benchmarks in one folder, with the libraries that they need besides LibTorch and CUDA, for a
# machine with a GPU and Python's torch but without MPI and HDF5. They must have been built with the LibTorch of that machine.
#   tests/tools/gpu-bundle.sh BUILD FOLDER     e.g. tests/tools/gpu-bundle.sh build/gpu gpu-bundle
# On that machine run FOLDER/gpu-session.sh, in a writable folder.
set -euo pipefail
if [ $# != 2 ]; then
  sed -n '2,5s/^# *//p' "$0"
  exit 2
fi
build=$1 folder=$2
programs=("$build"/tests/test_gpu "$build"/tests/test_gpu_shared "$build"/tests/test_gpu_waits "$build"/tests/test_nccl_gpu
          "$build"/libexec/hortator/hortator-{bench,doctor,test} "$build"/bin/{language_model,exported})
rm -rf "${folder:?}/bin" "${folder:?}/lib" "${folder:?}/mpi"
mkdir -p "$folder/bin" "$folder/lib" "$folder/mpi/parts"
for program in "${programs[@]}"; do
  cp -L "$program" "$folder/bin/"
  strip "$folder/bin/$(basename "$program")"
done

# Libraries of the other machine: the C and C++ libraries, LibTorch and those of NVIDIA.
foreign='/(libstdc\+\+|libgcc_s|libtorch|libc10|libcu|libnv|libnccl|libc\.|libm\.|libdl\.|librt\.|libpthread|ld-linux|libgomp|libgfortran)'
copy_needed() {  # FILE...: copies the libraries that they need
  ldd "$@" 2>/dev/null | awk '$2 == "=>" && $3 ~ /^\// {print $3}' | sort -u | { grep -vE "$foreign" || true; } | while read -r library; do
    cp -Lu "$library" "$folder/lib/"
  done
}
copy_needed "$folder"/bin/*

# Open MPI loads its plugins at run time, and ranks that share the GPU need mpirun. Plugins for networks and schedulers are not copied.
mpirun=$(readlink -f "$(command -v mpirun)")
cp -L "$mpirun" "$folder/bin/mpirun"
mpi_library=$(ldd "$build/tests/test_gpu" | awk '/libmpi\.so|libopen-pal\.so/ && !found++ {print $3}')
for parts in "$(dirname "$mpi_library")"/openmpi*/mca "$(dirname "$(readlink -f "$mpi_library")")"/openmpi*/lib/openmpi* \
             "$(dirname "$(readlink -f "$mpi_library")")"/openmpi; do
  if compgen -G "$parts/mca_*.so" >/dev/null; then cp -L "$parts"/mca_*.so "$folder/mpi/parts/"; fi
done
find "$folder/mpi/parts" -regextype egrep \
  -regex '.*_(ofi|ucx|uct|openib|usnic|psm|psm2|portals4|verbs|monitoring|hcoll|sctp|slurm|tm|gridengine|lsf|alps)\.so|.*mca_(spml|scoll|sshmem|memheap|atomic)_.*' -delete
if ! compgen -G "$folder/mpi/parts/mca_*.so" >/dev/null; then
  echo "gpu-bundle.sh: No plugins of Open MPI found beside '$mpi_library'. The build must use Open MPI" >&2
  exit 1
fi
copy_needed "$folder/bin/mpirun" "$folder"/mpi/parts/*.so
strip --strip-unneeded "$folder"/lib/*.so* "$folder"/mpi/parts/*.so

here=$(dirname "${BASH_SOURCE[0]}")
cp "$here"/{gpu-session.sh,eager-step.py} "$folder/"
cp "$here/../../share/doc/from-accelerate.md" "$folder/text.md"
rm -rf "${folder:?}/exported"
cp -r "$here/../unit/exported/files" "$folder/exported"
du -sh "$folder"
