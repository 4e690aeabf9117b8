#include "comm/nccl/devices.hpp"

#include <algorithm>
#include <hortator/error.hpp>
#include <map>

#include "core/text/text.hpp"

namespace hortator::comm {
namespace {

void refuse_slices(std::span<const NcclDevice> devices) {
  for (const auto& device : devices) {
    if (device.name.find(" MIG ") == std::string::npos) continue;
    throw UsageError({.what = text::concat("Rank ", device.rank, " has a slice of a GPU, ", device.name),
                      .why = "MIG slices have no path to each other, and NCCL takes two of one card for the same GPU",
                      .hint = "ask for whole GPUs, run one rank, or set HORTATOR_DEVICE=cpu"});
  }
}

void refuse_sharing(std::span<const NcclDevice> devices) {
  std::map<std::string, int> owners;
  for (const auto& device : devices) {
    const auto [owner, is_new] = owners.emplace(device.uuid, device.rank);
    if (is_new) continue;
    throw UsageError({.what = text::concat("Ranks ", owner->second, " and ", device.rank, " share the GPU ",
                                           device.uuid, " (", device.name, ")"),
                      .why = "NCCL needs a GPU for each rank",
                      .hint = "start as many ranks a node as it has GPUs (srun --ntasks-per-node=N --gpus-per-node=N, "
                              "mpirun --map-by ppr:N:node), or set HORTATOR_DEVICE=cpu"});
  }
}

}  // namespace

std::string check_nccl_devices(std::span<const NcclDevice> of_node) {
  refuse_slices(of_node);
  refuse_sharing(of_node);
  const auto ranks = static_cast<int>(of_node.size());
  const auto confined = std::ranges::find_if(
      of_node, [&](const NcclDevice& device) { return device.openable > 0 && device.openable < ranks; });
  if (confined == of_node.end()) return {};
  return text::concat("rank ", confined->rank, " may open ", text::count(confined->openable, "GPU"),
                      " only, of a node with ", ranks,
                      " ranks: a device cgroup for each task keeps NCCL from NVLink and peer access, and data "
                      "goes through host memory. Start the job with srun --gpus-per-node=",
                      ranks, ", without --gpus-per-task and --gpu-bind");
}

}  // namespace hortator::comm
