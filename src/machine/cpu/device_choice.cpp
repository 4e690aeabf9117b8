#include "machine/cpu/device_choice.hpp"

#include <algorithm>
#include <hortator/error.hpp>
#include <map>
#include <set>

#include "core/text/text.hpp"

namespace hortator::machine {
namespace {

void check_known(const std::string& device) {
  if (device == "cpu" || device == "cuda") return;
  throw UsageError(
      {.what = text::concat("HORTATOR_DEVICE=", device, " is no device"), .hint = "it may be cpu or cuda"});
}

void check_cuda_can_be_had(const DeviceRequest& request) {
  const std::string why = "HORTATOR_DEVICE=cuda asks for it";
  if (request.cpu_asked) {
    throw UsageError(
        {.what = "this program stays on the CPU", .why = why, .hint = "unset HORTATOR_DEVICE, or drop the option cpu"});
  }
  if (!request.is_built) {
    throw UsageError({.what = "this Hortator was built without CUDA",
                      .why = why,
                      .hint = "build with HORTATOR_WITH_CUDA=ON, or unset HORTATOR_DEVICE"});
  }
  if (request.visible == 0) {
    throw UsageError({.what = "no CUDA device is visible on this node",
                      .why = why,
                      .hint = "ask the scheduler for GPUs (e.g. --gpus-per-node), look at CUDA_VISIBLE_DEVICES and "
                              "nvidia-smi, or unset HORTATOR_DEVICE"});
  }
}

[[noreturn]] void refuse_sharing(std::size_t ranks, std::size_t devices) {
  const auto cards = text::count(static_cast<long long>(devices), "visible CUDA device");
  throw UsageError(
      {.what = text::concat(text::count(static_cast<long long>(ranks), "rank"), " on this node for ", cards),
       .why = "each rank needs a device of its own",
       .hint = text::concat(
           "start ", devices, " a node (srun --ntasks-per-node=", devices, ", mpirun --map-by ppr:", devices,
           ":node), ask for more GPUs, set HORTATOR_DEVICE=cpu, or HORTATOR_SHARE_DEVICES=1 to have them share")});
}

}  // namespace

bool wants_cuda(const DeviceRequest& request) {
  const auto& asked = request.environment;
  if (asked) check_known(*asked);
  if (asked == "cuda") check_cuda_can_be_had(request);
  return !request.cpu_asked && asked != "cpu" && request.is_built && request.visible > 0;
}

bool asked_for_cpu(const core::Variables& variables) {
  return core::yes_or_no(variables, "HORTATOR_CPU", "set it to 1 or 0").value_or(false);
}

Sharing asked_sharing(const core::Variables& variables) {
  const auto asked = core::yes_or_no(variables, "HORTATOR_SHARE_DEVICES",
                                     "set it to 1 for several ranks on one CUDA device, or unset it");
  return asked.value_or(false) ? Sharing::allowed : Sharing::refused;
}

int pick_device(std::span<const std::vector<std::string>> visible_of_node, int local_rank, Sharing sharing) {
  std::set<std::string> all;
  for (const auto& visible : visible_of_node) all.insert(visible.begin(), visible.end());

  // Every rank deals the devices out to all ranks in the same order, so that no two can choose the same.
  std::map<std::string, int> owners;
  for (int rank = 0;; ++rank) {
    const auto& visible = visible_of_node[static_cast<std::size_t>(rank)];
    const auto mine = std::ranges::min_element(
        visible, {}, [&](const auto& device) { return owners.contains(device) ? owners.at(device) : 0; });
    const bool is_taken = mine != visible.end() && owners.contains(*mine);
    if (mine == visible.end() || (is_taken && sharing == Sharing::refused))
      refuse_sharing(visible_of_node.size(), all.size());
    if (rank == local_rank) return static_cast<int>(mine - visible.begin());
    ++owners[*mine];
  }
}

DistributedType distributed_type(bool cuda, int ranks) {
  if (ranks == 1) return DistributedType::no;
  return cuda ? DistributedType::multi_gpu : DistributedType::multi_cpu;
}

}  // namespace hortator::machine
