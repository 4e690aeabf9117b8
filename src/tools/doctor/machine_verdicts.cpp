#include "core/text/text.hpp"
#include "core/text/units.hpp"
#include "tools/doctor/machine.hpp"

namespace hortator::tools::doctor {
namespace {

using enum Severity;

constexpr std::uint64_t mib = std::uint64_t{1} << 20;

Finding judge_kernel(const std::string& kernel) {
  const auto parts = text::split(kernel, '.');
  long long major = 0;
  long long minor = 0;
  const bool is_known = parts.size() > 1 && text::parse_integer(parts[0], major) &&
                        text::parse_integer(parts[1].substr(0, parts[1].find_first_not_of("0123456789")), minor);
  if (!is_known || major > 5 || (major == 5 && minor >= 5)) return {"kernel", ok, kernel};
  return {"kernel", note,
          text::concat(kernel, " is older than 5.5, with which PyTorch processes have been seen to hang"),
          "ask for a newer kernel if runs hang without a message"};
}

Finding judge_shared_memory(const MachineFacts& machine) {
  constexpr auto remedy =
      "give the container more (docker --shm-size=1g, apptainer uses the node's), or ask for a larger /dev/shm "
      "(mount -o remount,size=50% /dev/shm)";
  if (!machine.free_shared_memory) return {"shared memory", error, "/dev/shm does not exist", remedy};
  const auto per_rank = *machine.free_shared_memory / static_cast<std::uint64_t>(machine.local_ranks);
  const auto message = text::concat(units::bytes(*machine.free_shared_memory), " free in /dev/shm, for ",
                                    text::count(machine.local_ranks, "rank"));
  if (per_rank < 16 * mib) {
    return {"shared memory", error, message + ": MPI and NCCL fail with a bus error", remedy};
  }
  if (per_rank < 64 * mib) return {"shared memory", warning, message + ": tight for NCCL", remedy};
  return {"shared memory", ok, message};
}

Findings judge_limits(const ProcessLimits& limits) {
  Findings findings;
  if (limits.open_files && *limits.open_files < 1024) {
    findings.push_back({"ulimits", warning,
                        text::concat("ulimit -n is ", *limits.open_files,
                                     " open files: MPI and loaders need one for each peer and file"),
                        "ulimit -n 4096 in the job script, or LimitNOFILE= of slurmd"});
  }
  if (limits.processes && *limits.processes < 512) {
    findings.push_back(
        {"ulimits", warning,
         text::concat("ulimit -u is ", *limits.processes, " processes: threads count, and each rank has dozens"),
         "ulimit -u 4096 in the job script, or LimitNPROC= of slurmd"});
  }
  if (!limits.stack) {
    findings.push_back(
        {"ulimits", note,
         "ulimit -s is unlimited: threads then get stacks of 2 MiB instead of 8 MiB, too small for NCCL before 2.28",
         "ulimit -s 8192 in the job script"});
  } else if (*limits.stack < 4 * mib) {
    findings.push_back(
        {"ulimits", warning,
         text::concat("ulimit -s is ", units::bytes(*limits.stack), " of stack: deep models overflow it in backward"),
         "ulimit -s 8192 in the job script"});
  }
  if (limits.address_space) {
    findings.push_back({"ulimits", warning,
                        text::concat("ulimit -v is ", units::bytes(*limits.address_space),
                                     ": LibTorch and CUDA map more than they use"),
                        "ulimit -v unlimited; limit memory by the scheduler's control groups"});
  }
  if (findings.empty()) findings.push_back({"ulimits", ok, "sufficient"});
  return findings;
}

Finding judge_remove_ipc(const MachineFacts& machine) {
  if (!machine.has_logind) return {"RemoveIPC", ok, "no systemd-logind here"};
  if (text::parse_bool(machine.remove_ipc) == false) return {"RemoveIPC", ok, "off"};
  return {
      "RemoveIPC", warning,
      text::concat("logind removes a user's files in /dev/shm when the last login session ends (RemoveIPC=",
                   machine.remove_ipc.empty() ? "yes by default" : machine.remove_ipc, "), even under running jobs"),
      "RemoveIPC=no in /etc/systemd/logind.conf, then systemctl restart systemd-logind"};
}

Findings judge_group(const MachineFacts& machine) {
  Findings findings;
  const auto& group = machine.group;
  if (group.memory && *group.memory < std::uint64_t{1} << 30) {
    findings.push_back({"control group", error,
                        text::concat("it allows ", units::bytes(*group.memory), " of the node's ",
                                     units::bytes(machine.memory), ": each rank needs half of that for LibTorch only"),
                        "ask for memory: --mem=0 or --mem-per-cpu of Slurm, -l select=...:mem= of PBS"});
  } else if (group.memory && *group.memory < machine.memory / 2) {
    findings.push_back(
        {"control group", note,
         text::concat("it allows ", units::bytes(*group.memory), " of the node's ", units::bytes(machine.memory)),
         "if the job owns the whole node: --mem=0 of Slurm, -l select=...:mem= of PBS"});
  }
  if (group.cpus && *group.cpus < machine.cpus) {
    findings.push_back(
        {"control group", warning,
         text::concat("it allows the CPU time of ", units::number(*group.cpus), " of the ",
                      text::count(machine.cpus, "CPU"), " that are visible: threads are throttled again and again"),
         "bind to CPUs instead of using a quota (--cpus-per-task of Slurm, docker --cpuset-cpus)"});
  }
  if (findings.empty()) findings.push_back({"control group", ok, "no tight limits"});
  return findings;
}

}  // namespace

Findings judge(const MachineFacts& machine) {
  Findings findings = {judge_kernel(machine.kernel), judge_shared_memory(machine)};
  for (auto& finding : judge_limits(machine.limits)) findings.push_back(std::move(finding));
  findings.push_back(judge_remove_ipc(machine));
  for (auto& finding : judge_group(machine)) findings.push_back(std::move(finding));
  return findings;
}

}  // namespace hortator::tools::doctor
