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
  throw UsageError({.what = text::concat("HORTATOR_DEVICE: expected cpu or cuda, got ", text::quote(device))});
}

void check_cuda_available(const DeviceRequest& request) {
  const std::string why = "HORTATOR_DEVICE=cuda requests CUDA";
  if (request.cpu_asked) {
    throw UsageError(
        {.what = "This program stays on the CPU", .why = why, .hint = "unset HORTATOR_DEVICE, or drop the option cpu"});
  }
  if (!request.is_built) {
    throw UsageError({.what = "This Hortator was built without CUDA",
                      .why = why,
                      .hint = "build with HORTATOR_WITH_CUDA=ON, or unset HORTATOR_DEVICE"});
  }
  if (request.visible == 0) {
    throw UsageError({.what = "No CUDA device is visible on this node",
                      .why = why,
                      .hint = "request GPUs from the scheduler (e.g. --gpus-per-node), check CUDA_VISIBLE_DEVICES and "
                              "nvidia-smi, or unset HORTATOR_DEVICE"});
  }
}

[[noreturn]] void refuse_sharing(std::size_t ranks, std::size_t devices) {
  const auto cards = text::count(static_cast<long long>(devices), "visible CUDA device");
  throw UsageError(
      {.what = text::concat(text::count(static_cast<long long>(ranks), "rank"), " on this node for ", cards),
       .why = "each rank needs its own device",
       .hint = text::concat(
           "start ", devices, " per node (srun --ntasks-per-node=", devices, ", mpirun --map-by ppr:", devices,
           ":node), request more GPUs, set HORTATOR_DEVICE=cpu, or set HORTATOR_SHARE_DEVICES=1 to share devices")});
}

}  // namespace

bool wants_cuda(const DeviceRequest& request) {
  const auto& asked = request.environment;
  if (asked) check_known(*asked);
  if (asked == "cuda") check_cuda_available(request);
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

  // Every rank assigns devices to all ranks in the same order, so that no two choose the same one.
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
