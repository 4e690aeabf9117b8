#!/usr/bin/env bash
# `hortator doctor` finds faults that are simulated with mounts: small /dev/shm, control groups, devices, drivers, networks, no mpirun.
#   mounts.sh HORTATOR SHIM MPIEXEC
# Exit code 77 if mounts are not permitted: they need root.
set -euo pipefail
hortator=$1 shim=$2 mpiexec=$3
unshare -m mount -t tmpfs tmpfs /mnt 2>/dev/null || { echo 'skipped: mounts are not permitted'; exit 77; }
# shellcheck source=tests/integration/doctor/support.sh
. "$(dirname "${BASH_SOURCE[0]}")/support.sh"
mounted() { run unshare -m bash -c "set -e; $1; exec \"\$0\" doctor ." "$hortator"; }

# Faults that do not affect each other are simulated in one start.
small_shm='mount -t tmpfs -o size=8m tmpfs /dev/shm' tight_shm='mount -t tmpfs -o size=48m tmpfs /dev/shm'
full_folder='mount -t tmpfs -o size=64m tmpfs folder; cd folder' folder_in_memory='mount -t tmpfs -o size=4g tmpfs folder; cd folder'
removes_ipc='mount -t tmpfs tmpfs /run; mkdir -p /run/systemd/system; mkdir -p /etc/systemd; mount -t tmpfs tmpfs /etc/systemd; echo RemoveIPC=yes >/etc/systemd/logind.conf'
little_memory=true part_of_memory=true little_time=true
if grep -q '^0::' /proc/self/cgroup; then
  # shellcheck disable=SC2016
  group='mount -t tmpfs tmpfs /sys/fs/cgroup; mkdir -p "/sys/fs/cgroup$(sed -n "s/^0:://p" /proc/self/cgroup)"'
  little_memory="$group; echo 536870912 >/sys/fs/cgroup/memory.max"
  part_of_memory="$group; echo 1342177280 >/sys/fs/cgroup/memory.max"
  little_time="echo '50000 100000' >/sys/fs/cgroup/cpu.max"
fi
hidden="for f in \$(type -ap mpirun mpiexec | sort -u) $mpiexec; do mount --bind /dev/null \$f; done"
mkdir bin foreign folder
printf '#!/bin/sh\necho "%s"\n' "$refused" >foreign/mpirun
chmod +x foreign/mpirun

mounted "$small_shm; $full_folder; $removes_ipc; $little_memory; $hidden"
expect_code 1
finds 'shared memory' error 'free in /dev/shm, for 1 rank: MPI and NCCL fail' 'shm-size'
finds folder warning 'folder \(tmpfs\): 64\.0 MiB free, little for checkpoints' 'parallel file system'
finds RemoveIPC warning 'RemoveIPC=yes' 'RemoveIPC=no in /etc/systemd/logind.conf'
[ "$little_memory" = true ] || finds 'control group' error 'allows 512.0 MiB' '--mem=0'
# without the mpirun of Hortator's MPI
finds mpirun note 'none on PATH' 'load the MPI module'

mounted "$tight_shm; $folder_in_memory; $part_of_memory; $little_time; $hidden; export PATH=$scratch/foreign:\$PATH"
expect_code 1
finds 'shared memory' warning 'tight for NCCL' 'shm-size'
finds folder note "4\\.0 GiB free, in this node's memory" 'lost with the node'
if [ "$little_memory" != true ]; then
  if [ "$(awk '/^MemTotal/ { print $2 }' /proc/meminfo)" -gt 3200000 ]; then finds 'control group' note 'allows 1.2 GiB of the node' '--mem=0'; fi
  finds 'control group' warning 'the CPU time of 0.5' 'cpus-per-task'
fi
# with that of another MPI
finds mpirun error 'another MPI \(.*\) than Hortator.s' 'put its mpirun first on PATH'
# with that of an MPI for which this build has a library of its own
if [ -d "$further_libraries" ]; then
  mkdir served
  printf '#!/bin/sh\necho "HYDRA build details:"\n' >served/mpirun
  chmod +x served/mpirun
  mounted "export PATH=$scratch/served:\$PATH"
  expect_line '^ok +mpirun +HYDRA.* for which this build has a library'
fi

# Two GPUs; only one can be opened. DOCTOR_GPUS sets the number that CUDA reports. The rest of /dev is unchanged.
# shellcheck disable=SC2016
devices='d=$(mktemp -d); mount -t tmpfs tmpfs "$d"; mkdir "$d/old"; mount --rbind /dev "$d/old"
for f in /dev/*; do [[ $f == */nvidia* ]] || ln -s "old/${f##*/}" "$d/${f##*/}"; done
touch "$d/nvidia0" "$d/nvidiactl"; ln -s nowhere "$d/nvidia1"; mount --rbind "$d" /dev'
mounted "$devices"
if [ "$has_cuda" = 0 ]; then
  finds GPUs warning 'has 2 GPUs, but Hortator was built without CUDA' 'with CUDA'
else
  finds GPUs error 'has 2 GPUs, but CUDA shows none' 'gpus-per-node'
  shown() { # NUMBER RANKS: runs the doctor on RANKS ranks; each sees NUMBER devices
    run unshare -m bash -c "set -e; $devices; exec mpirun -n $2 --oversubscribe --bind-to none env LD_PRELOAD=$shim DOCTOR_FAULTS=gpus DOCTOR_GPUS=$1 \"\$0\" doctor ." "$hortator"
  }
  shown 2 1
  finds GPUs note '1 of 2 stay idle' 'hortator launch --ranks-per-node'
  shown 2 2
  finds GPUs warning 'lets this rank open 1 of 2: .*2 of 2 ranks' 'without --gpus-per-task'
  shown 1 2
  expect_code 1
  finds GPUs error '1 GPU for 2 ranks on this node' 'one rank for each GPU'
fi

# drivers, and fast networks
printf '#!/bin/sh\necho mca:pml:ob1:version\n' >bin/ompi_info
chmod +x bin/ompi_info
networks="export PATH=$scratch/bin:\$PATH; mount -t tmpfs tmpfs /sys/class; mkdir -p /sys/class"
drivers='if [ -d /proc/driver ]; then mount -t tmpfs tmpfs /proc/driver; fi'
mounted "$drivers; $networks/infiniband/mlx5_0; ulimit -l 64"
expect_code 1
finds fabric error 'ulimit -l is 64.0 KiB' 'LimitMEMLOCK'
if [[ $foreign == HYDRA* ]]; then
  finds fabric warning 'mlx5_0, but this Open MPI has neither UCX nor libfabric' 'UCX \(InfiniBand\)'
else
  expect_no_line 'this Open MPI'
fi
if [ "$has_cuda" = 1 ]; then
  finds CUDA note 'no NVIDIA driver here' 'only on nodes with GPUs'
  mounted "$drivers; mkdir /proc/driver/nvidia; echo 'NVRM version: NVIDIA UNIX x86_64 Kernel Module  430.12.3  Sun Jul 27' >/proc/driver/nvidia/version; $networks/cxi/cxi0"
  expect_code 1
  finds CUDA error 'driver 430\.12\.3 is too old for it' 'ask for driver [0-9]+ or newer'
  finds fabric error 'cxi0, but no libnccl-net for it: NCCL would use TCP' 'aws-ofi-nccl'
fi
