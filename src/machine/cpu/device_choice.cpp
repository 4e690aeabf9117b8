#include "machine/cpu/device_choice.hpp"

#include <algorithm>
#include <hortator/error.hpp>
#include <map>
#include <set>

#include "core/environment/setting_key.hpp"
#include "core/text/text.hpp"

namespace hortator::machine {
namespace {

// The requested kind: this build's, or another one.
const DeviceKind& named_kind(const DeviceRequest& request) {
  const auto& name = *request.environment;
  if (request.kind != nullptr && request.kind->name == name) return *request.kind;
  std::string names = "cpu";
  for (const auto& kind : known_kinds()) {
    if (kind.name == name) return kind;
    names += text::concat(" or ", kind.name);
  }
  throw UsageError({.what = text::concat("HORTATOR_DEVICE: expected ", names, ", got ", text::quote(name))});
}

void check_available(const DeviceKind& kind, const DeviceRequest& request) {
  const auto why = text::concat("HORTATOR_DEVICE=", kind.name, " requests ", kind.title);
  if (request.cpu_asked) {
    throw UsageError(
        {.what = "This program stays on the CPU", .why = why, .hint = "unset HORTATOR_DEVICE, or drop the option cpu"});
  }
  if (request.kind == nullptr || request.kind->name != kind.name) {
    throw UsageError({.what = text::concat("This Hortator was built without ", kind.title),
                      .why = why,
                      .hint = text::concat("build with ", kind.build_option, "=ON, or unset HORTATOR_DEVICE")});
  }
  if (request.visible == 0) {
    throw UsageError({.what = text::concat("No ", kind.title, " device is visible on this node"),
                      .why = why,
                      .hint = text::concat("request GPUs from the scheduler (e.g. --gpus-per-node), check ",
                                           kind.visibility, " and ", kind.tool, ", or unset HORTATOR_DEVICE")});
  }
}

[[noreturn]] void refuse_sharing(const DeviceKind& kind, std::size_t ranks, std::size_t devices) {
  const auto cards = text::count(static_cast<long long>(devices), text::concat("visible ", kind.title, " device"));
  throw UsageError(
      {.what = text::concat(text::count(static_cast<long long>(ranks), "rank"), " on this node for ", cards),
       .why = "each rank needs its own device",
       .hint = text::concat(
           "start ", devices, " per node (srun --ntasks-per-node=", devices, ", mpirun --map-by ppr:", devices,
           ":node), request more GPUs, set HORTATOR_DEVICE=cpu, or set HORTATOR_SHARE_DEVICES=1 to share devices")});
}

}  // namespace

bool wants_accelerator(const DeviceRequest& request) {
  const bool is_cpu = request.environment == "cpu";
  if (request.environment && !is_cpu) check_available(named_kind(request), request);
  return !request.cpu_asked && !is_cpu && request.kind != nullptr && request.visible > 0;
}

bool asked_for_cpu(const core::Variables& variables) {
  const auto asked = core::first_set(variables, {"HORTATOR_CPU", "ACCELERATE_USE_CPU"});
  return asked && core::read_onoff(core::program_setting("cpu"), *asked);
}

Sharing asked_sharing(const core::Variables& variables) {
  const auto asked =
      core::yes_or_no(variables, "HORTATOR_SHARE_DEVICES", "set it to 1 for several ranks on one device, or unset it");
  return asked.value_or(false) ? Sharing::allowed : Sharing::refused;
}

int pick_device(const DeviceKind& kind, std::span<const std::vector<std::string>> visible_of_node, int local_rank,
                Sharing sharing) {
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
      refuse_sharing(kind, visible_of_node.size(), all.size());
    if (rank == local_rank) return static_cast<int>(mine - visible.begin());
    ++owners[*mine];
  }
}

DistributedType distributed_type(c10::Device device, int ranks) {
  if (ranks == 1) return DistributedType::no;
  return device.is_cpu() ? DistributedType::multi_cpu : DistributedType::multi_gpu;
}

}  // namespace hortator::machine
