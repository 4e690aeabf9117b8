#!/usr/bin/env bash
# Each fault that the doctor knows, made on this machine as far as it can be, and found with its remedy.
#   provoke.sh HORTATOR SHIM CXX
# What needs mounts needs root (or user namespaces), and is left out with a word where it cannot be done.
set -euo pipefail
hortator=$1 shim=$2 compiler=$3
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=tests/setup/support.sh
. "$here/../../setup/support.sh"
cd "$scratch"
for name in $(compgen -e | grep -E '^(SLURM|PBS|HORTATOR)_' || true); do unset "$name"; done

# finds CHECK SEVERITY WORDS REMEDY: in what was printed last, the finding and in the line below it the remedy
finds() {
  local line
  line=$(grep -nE "^$2 +$1 +.*$3" <<<"$output" | head -n 1 | cut -d : -f 1) || true
  [ -n "$line" ] || wrong "no $2 of $1 that says '$3'"
  sed -n "$((line + 1))p" <<<"$output" | grep -qE "^ +remedy: .*$4" || wrong "the remedy of $1 is not '$4'"
}
faulty() { run env DOCTOR_FAULT="$1" LD_PRELOAD="$shim" "${@:2}"; }

# a machine as it is: every check is there, and nothing that the next ones provoke
run "$hortator" doctor .
for check in kernel 'shared memory' ulimits RemoveIPC 'control group' LibTorch MPI HDF5 CUDA NCCL folder rename fsync 'file locks' 'byte locks' GPUs fabric \
  'CPU binding' clocks; do
  expect_line "^[a-z]+ +$check "
done
for check in rename fsync 'file locks' 'byte locks' LibTorch MPI HDF5 mpirun clocks; do expect_line "^ok +$check "; done
[ -z "$(ls -A .)" ] || wrong 'it leaves files behind'
usual=$code
run "$hortator" doctor --json .
expect_code "$usual"
expect_line '"check":"file locks".*"severity":"ok"'
expect_line '"errors":'

# the folder
faulty flock "$hortator" doctor .
expect_code "$usual"
finds 'file locks' warning 'no flock: .*not implemented' 'HDF5_USE_FILE_LOCKING=FALSE'
faulty fsync "$hortator" doctor .
expect_code 1
finds fsync error 'does not take fsync' 'save elsewhere'
faulty rename "$hortator" doctor .
expect_code 1
finds rename error 'does not replace files by rename' 'save elsewhere'
run "$hortator" doctor ./absent
expect_code 1
finds folder error 'absent cannot be written: No such file' 'hortator doctor FOLDER'
run "$hortator" doctor /proc
expect_code 1
finds folder error '/proc \(proc\) cannot be written' 'hortator doctor FOLDER'

# limits and kernel
run bash -c 'ulimit -n 256; exec "$0" doctor .' "$hortator"
finds ulimits warning 'ulimit -n is 256' 'ulimit -n 4096'
run bash -c 'ulimit -s 1024; exec "$0" doctor .' "$hortator"
finds ulimits warning 'ulimit -s is 1.0 MiB' 'ulimit -s 8192'
run bash -c 'ulimit -v 33554432; exec "$0" doctor .' "$hortator"
finds ulimits warning 'ulimit -v is 32.0 GiB' 'ulimit -v unlimited'
if (ulimit -u 400) 2>/dev/null; then
  run bash -c 'ulimit -u 400; exec "$0" doctor .' "$hortator"
  finds ulimits warning 'ulimit -u is 400' 'ulimit -u 4096'
fi
if (ulimit -s unlimited) 2>/dev/null; then
  run bash -c 'ulimit -s unlimited; exec "$0" doctor .' "$hortator"
  finds ulimits note 'ulimit -s is unlimited' 'ulimit -s 8192'
fi
faulty kernel "$hortator" doctor .
finds kernel note '4\.18\.0.* is older than 5\.5' 'newer kernel'

# libraries
faulty hdf5 "$hortator" doctor .
expect_code 1
finds HDF5 error 'loaded is HDF5 1\.99\.3, this Hortator was built with HDF5 1' 'load the HDF5 module'
echo 'int hortator_stand_in;' >"$scratch/stand_in.c"
"$compiler" -x c -shared -fPIC "$scratch/stand_in.c" -Wl,-soname,libmpi.so.99 -o "$scratch/libmpi.so.99"
run env LD_PRELOAD="$scratch/libmpi.so.99" "$hortator" doctor .
expect_code 1
finds MPI error 'two MPIs, .*libmpi\.so\.99' 'no other'
mkdir "$scratch/bin"
printf '#!/bin/sh\necho "HYDRA build details:"\n' >"$scratch/bin/mpirun"
chmod +x "$scratch/bin/mpirun"
PATH=$scratch/bin:$PATH run "$hortator" doctor .
case $("$hortator" env) in
  *'Open MPI v'*)
    expect_code 1
    finds mpirun error 'another MPI \(HYDRA' 'first on PATH'
    ;;
esac
mkdir "$scratch/torch"
touch "$scratch/torch/libtorch_cpu.so"
LD_LIBRARY_PATH=$scratch/torch run bash -c 'exec "$0" doctor .' "$hortator"
# the RPATH outranks LD_LIBRARY_PATH or not, by how the linker was built: either way it is found, or nothing starts
if [ "$code" = 0 ] || [ "$code" = 1 ] && [[ $output == *LD_LIBRARY_PATH* ]]; then
  finds LD_LIBRARY_PATH warning 'has a LibTorch' 'take that folder out'
fi

# ranks
if [ "$(nproc)" -ge 2 ]; then
  run taskset -c "$(taskset -cp $$ | sed 's/.*: //; s/[,-].*//')" mpirun -n 2 --oversubscribe --bind-to none "$hortator" doctor .
  expect_code 1
  finds 'CPU binding' error '2 ranks of this node on 1 CPU, though it has' 'cpus-per-task'
fi
run mpirun -n 2 --oversubscribe --bind-to none env DOCTOR_FAULT=clock DOCTOR_RANK=1 LD_PRELOAD="$shim" "$hortator" doctor .
finds clocks warning ' is (29\.[0-9]|30(\.[0-9]+)?) s ahead of' 'chronyc'
run mpirun -n 2 --oversubscribe --bind-to none env DOCTOR_FAULT=flock DOCTOR_RANK=0 LD_PRELOAD="$shim" "$hortator" doctor .
finds 'file locks' warning 'no flock.*1 of 2 ranks' 'HDF5_USE_FILE_LOCKING'

# what needs mounts of its own
unshare -m true 2>/dev/null || { echo 'left out: mounts cannot be made here'; exit 0; }
mounted() { run unshare -m bash -c "set -e; $1; exec \"\$0\" doctor ." "$hortator"; }
mounted 'mount -t tmpfs -o size=8m tmpfs /dev/shm'
expect_code 1
finds 'shared memory' error 'free in /dev/shm, for 1 rank: MPI and NCCL end' 'shm-size'
mounted 'mount -t tmpfs -o size=48m tmpfs /dev/shm'
finds 'shared memory' warning 'tight for NCCL' 'shm-size'
mounted 'mount -t tmpfs tmpfs /run; mkdir -p /run/systemd/system; mkdir -p /etc/systemd; mount -t tmpfs tmpfs /etc/systemd; echo RemoveIPC=yes >/etc/systemd/logind.conf'
finds RemoveIPC warning 'RemoveIPC=yes' 'RemoveIPC=no in /etc/systemd/logind.conf'
# shellcheck disable=SC2016
group='mount -t tmpfs tmpfs /sys/fs/cgroup; mkdir -p "/sys/fs/cgroup$(sed -n "s/^0:://p" /proc/self/cgroup)"'
if grep -q '^0::' /proc/self/cgroup; then
  mounted "$group; echo 536870912 >/sys/fs/cgroup/memory.max"
  expect_code 1
  finds 'control group' error 'allows 512.0 MiB' '--mem=0'
  mounted "$group; echo '50000 100000' >/sys/fs/cgroup/cpu.max"
  finds 'control group' warning 'the time of 0.5' 'cpus-per-task'
fi
# shellcheck disable=SC2016
mounted 'd=$(mktemp -d); mount -t tmpfs tmpfs "$d"; cp -a /dev/null /dev/zero /dev/urandom /dev/random "$d"; mkdir "$d/shm" "$d/pts"; touch "$d/nvidia0" "$d/nvidia1" "$d/nvidiactl"; mount -t tmpfs tmpfs "$d/shm"; mount --rbind "$d" /dev'
if "$hortator" env | grep -q 'built with *no'; then
  finds GPUs warning 'has 2 GPUs, this Hortator is built without CUDA' 'with CUDA'
else
  finds GPUs error 'has 2 GPUs, CUDA shows none' 'gpus-per-node'
fi
printf '#!/bin/sh\necho mca:pml:ob1:version\n' >"$scratch/bin/ompi_info"
chmod +x "$scratch/bin/ompi_info"
rm "$scratch/bin/mpirun"
fabric='mount -t tmpfs tmpfs /sys/class; mkdir -p /sys/class/infiniband/mlx5_0'
PATH=$scratch/bin:$PATH mounted "$fabric; ulimit -l 64"
expect_code 1
finds fabric warning 'mlx5_0, but this Open MPI has neither UCX nor libfabric' 'UCX \(InfiniBand\)'
finds fabric error 'ulimit -l is 64.0 KiB' 'LimitMEMLOCK'
