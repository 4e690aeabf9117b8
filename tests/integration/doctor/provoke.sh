#!/usr/bin/env bash
# `hortator doctor` finds each fault that can be simulated on this machine, and prints its remedy.
#   provoke.sh HORTATOR SHIM CXX
# Faults that need mounts are in mounts.sh.
set -euo pipefail
hortator=$1 shim=$2 compiler=$3
# shellcheck source=tests/integration/doctor/support.sh
. "$(dirname "${BASH_SOURCE[0]}")/support.sh"
# Faults that do not affect each other are provoked in one start: those with warnings, and those with errors.

# this machine unchanged: every check is listed, and none of the faults simulated below is found
run "$hortator" doctor .
for check in kernel 'shared memory' ulimits RemoveIPC 'control group' LibTorch MPI HDF5 CUDA NCCL folder rename fsync 'file locks' 'byte locks' GPUs fabric \
  'CPU binding' clocks 'same bits' processors; do
  expect_line "^[a-z]+ +$check "
done
for check in rename fsync 'file locks' 'byte locks' LibTorch MPI HDF5 mpirun clocks 'same bits' processors; do expect_line "^ok +$check "; done
[ -z "$(ls -A .)" ] || wrong 'the doctor leaves files in the folder'
usual=$code
run "$hortator" doctor --json .
expect_code "$usual"
expect_line '"check":"file locks".*"severity":"ok"'
expect_line '"errors":'

# libraries that the doctor finds beside those of Hortator, and another MPI's mpirun
echo 'int hortator_stand_in;' >"$scratch/stand_in.c"
"$compiler" -x c -shared -fPIC "$scratch/stand_in.c" -Wl,-soname,libmpi.so.99 -o "$scratch/libmpi.so.99"
"$compiler" -x c -shared -fPIC "$scratch/stand_in.c" -Wl,-soname,libhdf5_serial.so.99 -o "$scratch/libhdf5_serial.so.99"
mkdir "$scratch/bin"
printf '#!/bin/sh\necho "%s"\n' "$refused" >"$scratch/bin/mpirun"
chmod +x "$scratch/bin/mpirun"

# warnings and notes
processes=''
if (ulimit -u 400) 2>/dev/null; then processes='ulimit -u 400'; fi
PATH=$scratch/bin:$PATH run bash -c "ulimit -n 256; ulimit -s 1024; ulimit -v 33554432; $processes
  exec env DOCTOR_FAULTS=flock,fcntl,kernel LD_PRELOAD='$shim:$scratch/libhdf5_serial.so.99' \"\$0\" doctor ." "$hortator"
expect_code "$usual"
finds 'file locks' warning 'no flock: .*not implemented' 'HDF5_USE_FILE_LOCKING=FALSE'
finds 'byte locks' warning 'no locks of byte ranges: No locks available' 'writer at direct'
finds ulimits warning 'ulimit -n is 256' 'ulimit -n 4096'
finds ulimits warning 'ulimit -s is 1.0 MiB' 'ulimit -s 8192'
finds ulimits warning 'ulimit -v is 32.0 GiB' 'ulimit -v unlimited'
[ -z "$processes" ] || finds ulimits warning 'ulimit -u is 400' 'ulimit -u 4096'
finds kernel note '4\.18\.0.* is older than 5\.5' 'newer kernel'
finds 'HDF5 beside' note 'libhdf5_serial\.so\.99 beside /' 'no other'
finds mpirun warning 'another MPI \(.*\) than Hortator.s' 'hortator launch, which uses [a-z/]'

# errors
stack=''
if (ulimit -s unlimited) 2>/dev/null; then stack='ulimit -s unlimited'; fi
run bash -c "$stack
  exec env DOCTOR_FAULTS=fsync,rename,shm,torch,nccl,hdf5 LD_PRELOAD='$shim:$scratch/libmpi.so.99' \"\$0\" doctor ." "$hortator"
expect_code 1
finds fsync error 'does not support fsync' 'save elsewhere'
finds rename error 'does not replace files by rename' 'save elsewhere'
[ -z "$stack" ] || finds ulimits note 'ulimit -s is unlimited' 'ulimit -s 8192'
finds 'shared memory' error '/dev/shm does not exist' 'shm-size'
finds LibTorch error 'LibTorch that was loaded is 2\.11\.7, this Hortator was built with LibTorch 2' 'out of LD_LIBRARY_PATH'
[ "$has_cuda" = 0 ] || finds NCCL error '2\.3\.4 was loaded, Hortator was built with 2' 'LD_LIBRARY_PATH is not the cause: check LD_PRELOAD'
finds HDF5 error 'loaded HDF5 is HDF5 1\.99\.3, this Hortator was built with HDF5 1' 'load the HDF5 module'
finds MPI error 'two MPIs, .*libmpi\.so\.99' 'no other'
# one error is enough for exit code 1
run env RANK=0 WORLD_SIZE=2 LOCAL_RANK=0 LOCAL_WORLD_SIZE=2 "$hortator" doctor .
expect_code 1
finds start error 'started 2 ranks, but MPI sees only 1 rank' 'srun --mpi=pmix'
run "$hortator" doctor ./absent
expect_code 1
finds folder error 'absent cannot be written: No such file' 'hortator doctor FOLDER'
run "$hortator" doctor /proc
expect_code 1
finds folder error '/proc \(proc\) cannot be written' 'hortator doctor FOLDER'
mkdir "$scratch/torch"
touch "$scratch/torch/libtorch_cpu.so"
LD_LIBRARY_PATH=$scratch/torch run bash -c 'exec "$0" doctor .' "$hortator"
# depending on the linker's defaults RPATH or LD_LIBRARY_PATH takes precedence: the doctor finds this, or does not start
if [ "$code" = 0 ] || [ "$code" = 1 ] && [[ $output == *LD_LIBRARY_PATH* ]]; then
  finds LD_LIBRARY_PATH warning 'has a LibTorch' 'remove that folder'
fi

# ranks
if [ "$(nproc)" -ge 2 ]; then
  run taskset -c "$(taskset -cp $$ | sed 's/.*: //; s/[,-].*//')" mpirun -n 2 --oversubscribe --bind-to none "$hortator" doctor .
  expect_code 1
  finds 'CPU binding' error '2 ranks of this node on 1 CPU, though it has' 'cpus-per-task'
fi
run mpirun -n 2 --oversubscribe --bind-to none env DOCTOR_FAULTS=one_cpu,clock@1,flock@0 LD_PRELOAD="$shim" "$hortator" doctor .
finds 'CPU binding' note '2 ranks of this node on 4 CPUs, some with only one' 'cpus-per-task=2'
finds clocks warning ' is (29\.[0-9]|30(\.[0-9]+)?) s ahead of' 'chronyc'
finds 'file locks' warning 'no flock.*1 of 2 ranks' 'HDF5_USE_FILE_LOCKING'
run mpirun -n 2 --oversubscribe --bind-to none env DOCTOR_FAULTS=small LD_PRELOAD="$shim" "$hortator" doctor .
finds 'CPU binding' warning '2 ranks of this node on 1 CPU: they wait' 'fewer ranks per node'

# the bits of one rank's kernel, on the last of three; and kernels for other processors, where this one has several kinds
run mpirun -n 3 --oversubscribe --bind-to none "$hortator" doctor .
expect_line '^ok +same bits +[0-9]+ kernels on 3 ranks, hash [0-9a-f]{16}$'
run mpirun -n 3 --oversubscribe --bind-to none env DOCTOR_FAULTS=bits@2 LD_PRELOAD="$shim" "$hortator" doctor .
finds 'same bits' warning "1 of [0-9]+ kernels compute other bits on $(hostname) \\(rank 2\\) than on $(hostname) \\(ranks 0, 1\\): softmax bfloat16 " 'ATEN_CPU_CAPABILITY'
expect_line "^note +processors +$(hostname): "
if grep -qw avx2 /proc/cpuinfo; then
  run mpirun --oversubscribe --bind-to none -n 1 "$hortator" doctor . : -n 1 env ATEN_CPU_CAPABILITY=default "$hortator" doctor .
  finds 'same bits' warning "compute other bits on $(hostname) \\(rank 1\\) than on $(hostname) \\(rank 0\\): .*softmax float32" 'ONEDNN_MAX_CPU_ISA'
  expect_line '^note +processors +.*\(rank 1\): .*LibTorch uses (DEFAULT|NO AVX)'
fi
