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

Findings judge(const DeviceFacts& devices) {
  if (devices.files == 0) return {{"GPUs", ok, "no NVIDIA GPU on this node"}};
  const auto has = text::concat("the node has ", text::count(devices.files, "GPU"));
  if (!devices.is_built) {
    return {{"GPUs", warning, has + ", but Hortator was built without CUDA",
             "load or build a Hortator with CUDA (share/setup/setup.sh --gpu), or use nodes without GPUs"}};
  }
  if (devices.visible == 0) {
    return {{"GPUs", error, has + ", but CUDA shows none to this rank",
             "request them from the scheduler (--gpus-per-node=N, -l select=...:ngpus=N); check CUDA_VISIBLE_DEVICES "
             "and nvidia-smi"}};
  }
  Findings findings;
  if (devices.openable < devices.files && devices.local_ranks > 1) {
    findings.push_back({"GPUs", warning,
                        text::concat("the scheduler lets this rank open ", devices.openable, " of ", devices.files,
                                     ": NCCL cannot use direct links to the others and is slow"),
                        "let all ranks see all GPUs: srun --gpus-per-node=N, without --gpus-per-task and --gpu-bind"});
  }
  if (devices.distinct < devices.local_ranks) {
    findings.push_back(
        {"GPUs", error,
         text::concat(text::count(devices.distinct, "GPU"), " for ", text::count(devices.local_ranks, "rank"),
                      " on this node: each rank needs its own"),
         "start one rank for each GPU: hortator launch --ranks-per-node, or ask for more GPUs"});
  } else if (devices.distinct > devices.local_ranks) {
    findings.push_back({"GPUs", note,
                        text::concat(devices.distinct - devices.local_ranks, " of ", devices.distinct, " stay idle"),
                        "start one rank for each GPU: hortator launch --ranks-per-node"});
  }
  if (findings.empty())
    findings.push_back({"GPUs", ok, text::concat("one for each of ", text::count(devices.local_ranks, "rank"))});
  return findings;
}

Findings judge(const BindingFacts& binding) {
  std::set<int> cpus;
  std::size_t min_cpus = SIZE_MAX;
  for (const auto& set : binding.of_ranks) {
    cpus.insert(set.begin(), set.end());
    min_cpus = std::min(min_cpus, set.size());
  }
  const auto ranks = binding.of_ranks.size();
  const auto all = static_cast<int>(cpus.size());
  const auto message =
      text::concat(text::count(static_cast<int>(ranks), "rank"), " of this node on ", text::count(all, "CPU"));
  if (cpus.size() < ranks && binding.machine_cpus >= static_cast<int>(ranks)) {
    return {{"CPU binding", error,
             text::concat(message, ", though it has ", binding.machine_cpus, ": they wait for each other"),
             "srun --cpus-per-task=N --cpu-bind=cores, mpirun --bind-to core or none; in an interactive shell, check "
             "taskset"}};
  }
  if (cpus.size() < ranks)
    return {{"CPU binding", warning, message + ": they wait for each other", "start fewer ranks per node"}};
  if (min_cpus == 1 && all > static_cast<int>(ranks)) {
    return {{"CPU binding", note, message + ", some with only one: loader and saver threads share it",
             "srun --cpus-per-task=2 or more"}};
  }
  return {{"CPU binding", ok, message}};
}

Findings judge(const ClockFacts& clocks) {
  const double worst = std::max(clocks.max_ahead, clocks.max_behind);
  if (worst <= 1) return {{"clocks", ok, "they agree within a second"}};
  return {{"clocks", warning,
           text::concat("that of ", clocks.worst, " is ", units::number(worst), " s ",
                        clocks.max_ahead > clocks.max_behind ? "ahead of" : "behind",
                        " rank 0's: timestamps of files and logs are misleading"),
           "check NTP on that node (chronyc tracking)"}};
}

Findings judge(const FabricFacts& fabric) {
  if (fabric.devices.empty()) return {{"fabric", ok, "no network faster than Ethernet"}};
  Findings findings;
  const auto names = text::join(fabric.devices);
  if (fabric.mpi_supports_fabrics == false) {
    findings.push_back(
        {"fabric", warning,
         text::concat("found ", names, ", but this Open MPI has neither UCX nor libfabric: it uses TCP"),
         "load an MPI that was built with UCX (InfiniBand) or libfabric (Slingshot, EFA, Omni-Path), and a Hortator "
         "built with it"});
  }
  const bool needs_plugin = std::any_of(fabric.devices.begin(), fabric.devices.end(), [](const auto& name) {
    return begins_with_any(name, {"cxi", "efa", "rdmap", "hfi1", "opx"});
  });
  if (fabric.has_nccl && needs_plugin && !fabric.nccl_plugin) {
    findings.push_back({"fabric", error,
                        text::concat("found ", names, ", but no libnccl-net for it: NCCL would use TCP"),
                        "load the site's aws-ofi-nccl module, and set NCCL_NET=\"AWS Libfabric\", so that it is never "
                        "ignored silently"});
  }
  if (fabric.locked_memory && *fabric.locked_memory < std::uint64_t{1} << 30) {
    findings.push_back({"fabric", error,
                        text::concat("found ", names, ", but ulimit -l is ", units::bytes(*fabric.locked_memory),
                                     ": send buffers cannot be locked in memory"),
                        "ulimit -l unlimited, by LimitMEMLOCK=infinity of slurmd or /etc/security/limits.conf"});
  }
  if (findings.empty()) findings.push_back({"fabric", ok, names});
  return findings;
}

}  // namespace hortator::tools::doctor
