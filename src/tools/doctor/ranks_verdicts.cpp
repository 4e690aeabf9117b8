#include <algorithm>
#include <set>

#include "core/text/text.hpp"
#include "core/text/units.hpp"
#include "tools/doctor/ranks.hpp"

namespace hortator::tools::doctor {
namespace {

using enum Severity;

bool begins_with_any(const std::string& name, const std::vector<std::string_view>& beginnings) {
  return std::any_of(beginnings.begin(), beginnings.end(), [&](auto beginning) { return name.starts_with(beginning); });
}

}  // namespace

Findings judge(const Devices& devices) {
  if (devices.files == 0) return {{"GPUs", ok, "this node has none from NVIDIA"}};
  const auto has = text::concat("the node has ", text::count(devices.files, "GPU"));
  if (!devices.is_built) {
    return {{"GPUs", warning, has + ", this Hortator is built without CUDA",
             "load or build a Hortator with CUDA (share/setup/setup.sh --gpu), or use nodes without GPUs"}};
  }
  if (devices.visible == 0) {
    return {{"GPUs", error, has + ", CUDA shows none to this rank",
             "ask the scheduler for them (--gpus-per-node=N, -l select=...:ngpus=N); look at CUDA_VISIBLE_DEVICES and "
             "at nvidia-smi"}};
  }
  Findings findings;
  if (devices.openable < devices.files && devices.local_ranks > 1) {
    findings.push_back({"GPUs", warning,
                        text::concat("the scheduler lets this rank open ", devices.openable, " of ", devices.files,
                                     ": NCCL does not find its neighbours and takes slow ways"),
                        "let all ranks see all: srun --gpus-per-node=N, without --gpus-per-task and --gpu-bind"});
  }
  if (devices.distinct < devices.local_ranks) {
    findings.push_back(
        {"GPUs", error,
         text::concat(text::count(devices.distinct, "GPU"), " for ", text::count(devices.local_ranks, "rank"),
                      " of this node: each rank needs its own"),
         "start one rank a GPU: hortator launch --ranks-per-node, or ask for more GPUs"});
  } else if (devices.distinct > devices.local_ranks) {
    findings.push_back({"GPUs", note,
                        text::concat(devices.distinct - devices.local_ranks, " of ", devices.distinct, " stay idle"),
                        "start one rank a GPU: hortator launch --ranks-per-node"});
  }
  if (findings.empty())
    findings.push_back({"GPUs", ok, text::concat("one for each of ", text::count(devices.local_ranks, "rank"))});
  return findings;
}

Findings judge(const Binding& binding) {
  std::set<int> cpus;
  std::size_t fewest = SIZE_MAX;
  for (const auto& set : binding.of_ranks) {
    cpus.insert(set.begin(), set.end());
    fewest = std::min(fewest, set.size());
  }
  const auto ranks = binding.of_ranks.size();
  const auto all = static_cast<int>(cpus.size());
  const auto says =
      text::concat(text::count(static_cast<int>(ranks), "rank"), " of this node on ", text::count(all, "CPU"));
  if (cpus.size() < ranks && binding.machine_cpus >= static_cast<int>(ranks)) {
    return {{"CPU binding", error,
             text::concat(says, ", though it has ", binding.machine_cpus, ": they wait for each other"),
             "srun --cpus-per-task=N --cpu-bind=cores, mpirun --bind-to core or none; in an interactive shell, look at "
             "taskset"}};
  }
  if (cpus.size() < ranks)
    return {{"CPU binding", warning, says + ": they wait for each other", "start fewer ranks a node"}};
  if (fewest == 1 && all > static_cast<int>(ranks)) {
    return {{"CPU binding", note, says + ", some with one alone: the threads of loaders and savers share it",
             "srun --cpus-per-task=2 or more"}};
  }
  return {{"CPU binding", ok, says}};
}

Findings judge(const Clocks& clocks) {
  const double worst = std::max(clocks.max_ahead, clocks.max_behind);
  if (worst <= 1) return {{"clocks", ok, "they agree within a second"}};
  return {{"clocks", warning,
           text::concat("that of ", clocks.worst, " is ", units::number(worst), " s ",
                        clocks.max_ahead > clocks.max_behind ? "ahead of" : "behind",
                        " rank 0's: times of files and logs mislead"),
           "see to NTP on that node (chronyc tracking)"}};
}

Findings judge(const Fabric& fabric) {
  if (fabric.devices.empty()) return {{"fabric", ok, "nothing faster than Ethernet here"}};
  Findings findings;
  const auto names = text::join(fabric.devices);
  if (fabric.mpi_knows == false) {
    findings.push_back(
        {"fabric", warning,
         text::concat("there is ", names, ", but this Open MPI has neither UCX nor libfabric: it uses TCP"),
         "load an MPI that was built with UCX (InfiniBand) or libfabric (Slingshot, EFA, Omni-Path), and a Hortator "
         "built with it"});
  }
  const bool needs_plugin = std::any_of(fabric.devices.begin(), fabric.devices.end(), [](const auto& name) {
    return begins_with_any(name, {"cxi", "efa", "rdmap", "hfi1", "opx"});
  });
  if (fabric.has_nccl && needs_plugin && !fabric.nccl_plugin) {
    findings.push_back({"fabric", error,
                        text::concat("there is ", names, ", but no libnccl-net for it: NCCL would use TCP"),
                        "load the site's aws-ofi-nccl module, and set NCCL_NET=\"AWS Libfabric\", so that it is never "
                        "left out in silence"});
  }
  if (fabric.locked_memory && *fabric.locked_memory < std::uint64_t{1} << 30) {
    findings.push_back({"fabric", error,
                        text::concat("there is ", names, ", but ulimit -l is ", units::bytes(*fabric.locked_memory),
                                     ": it cannot lock the memory that it sends from"),
                        "ulimit -l unlimited, by LimitMEMLOCK=infinity of slurmd or /etc/security/limits.conf"});
  }
  if (findings.empty()) findings.push_back({"fabric", ok, names});
  return findings;
}

}  // namespace hortator::tools::doctor
