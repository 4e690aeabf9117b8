#include "accelerator/dispatch/dispatch_plan.hpp"

#include <algorithm>
#include <cmath>
#include <hortator/error.hpp>

#include "bigmodel/device_map.hpp"
#include "bigmodel/max_memory.hpp"
#include "core/log.hpp"
#include "core/text/text.hpp"
#include "core/text/units.hpp"
#include "machine/memory/system_memory.hpp"

namespace hortator::accelerator {
namespace {

constexpr Bytes usual_page_bytes = 0x1p24;  // enough for a disk to read at full speed

void check_rule(const std::string& rule) {
  static const std::vector<std::string> known = {"auto", "balanced", "balanced_low_0", "sequential"};
  if (std::ranges::find(known, rule) != known.end()) return;
  throw UsageError({.what = text::concat("There is no device map ", text::quote(rule)),
                    .why = text::concat("known are ", text::join(known), ", and maps of names to places"),
                    .hint = text::suggestion(rule, known)});
}

/// Distributes a model by a rule.
class PlacementPlanner {
 public:
  PlacementPlanner(const torch::nn::Module& module, std::vector<PlacedTensor>& tensors,
                   const LoadAndDispatchOptions& options)
      : module_(module), tree_(bigmodel::tree_of(module)), tensors_(tensors), options_(options) {
    check_rule(rule());
    for (const auto& one : tensors) sizes_.special_dtypes.emplace(one.name, one.type);
  }

  DeviceMap run(const MaxMemory& memory) {
    auto map = deal(memory);
    const auto cpu = memory.find(DevicePlacement::cpu());
    const auto reading = room_to_read();
    if (reading == 0 || cpu == memory.end()) return map;
    // Needs room for two layers beside the parts in memory. The allocation reserves one, so the first try may suffice.
    const auto most = std::max(Bytes{0}, cpu->second - reading);
    const auto missing = bytes_on(tensors_, DevicePlacement::cpu()) - most;
    for (const auto limit : {cpu->second - missing, most}) {
      if (bytes_on(tensors_, DevicePlacement::cpu()) <= most) break;
      auto less = memory;
      less[DevicePlacement::cpu()] = std::max(Bytes{0}, limit);
      map = deal(less);
    }
    return map;
  }

 private:
  const std::string& rule() const { return std::get<std::string>(options_.device_map); }

  DeviceMap deal(const MaxMemory& memory) {
    auto limits = memory;
    if (rule() != "sequential") {
      limits = bigmodel::balanced_memory(tree_, {.max_memory = memory,
                                                 .no_split_module_classes = options_.no_split_module_classes,
                                                 .sizes = sizes_,
                                                 .low_zero = rule() == "balanced_low_0"});
    }
    auto map = bigmodel::infer_device_map(
        tree_, {.max_memory = limits, .no_split_module_classes = options_.no_split_module_classes, .sizes = sizes_});
    place(tensors_, module_, map, options_.offload_buffers);
    return map;
  }

  Bytes room_to_read() const {
    const auto layer = std::ceil(largest_layer_on_disk(tensors_));
    return layer == 0 ? 0 : 2 * static_cast<Bytes>(machine::whole_pages(static_cast<std::size_t>(layer)));
  }

  const torch::nn::Module& module_;
  bigmodel::ModuleTree tree_;
  std::vector<PlacedTensor>& tensors_;
  const LoadAndDispatchOptions& options_;
  SizeOptions sizes_;
};

DeviceMap map_for(const torch::nn::Module& module, std::vector<PlacedTensor>& tensors, const MaxMemory& memory,
                  const LoadAndDispatchOptions& options) {
  if (std::holds_alternative<std::string>(options.device_map))
    return PlacementPlanner(module, tensors, options).run(memory);
  auto map = std::get<DeviceMap>(options.device_map);
  check_device_map(module, map);
  place(tensors, module, map, options.offload_buffers);
  return map;
}

void warn_if_too_small(Bytes limit, Bytes room, Bytes layer) {
  if (layer <= room) return;
  const auto size = [](Bytes bytes) { return units::bytes(static_cast<std::uint64_t>(std::max(bytes, Bytes{0}))); };
  log::warn("the host's memory for the model is limited to ", size(limit), "; ", size(room),
            " of it are left for parts on disk, but the largest of these needs ", size(layer),
            ": the limit will be exceeded");
}

}  // namespace

Bytes page_bytes_for(const std::vector<PlacedTensor>& tensors, std::optional<Bytes> room) {
  return std::max(largest_layer_on_disk(tensors), std::min(usual_page_bytes, room ? *room / 4 : usual_page_bytes));
}

DispatchPlan plan_dispatch(const torch::nn::Module& module, std::vector<PlacedTensor>& tensors, const MaxMemory& memory,
                           const LoadAndDispatchOptions& options) {
  DispatchPlan plan{.map = map_for(module, tensors, memory, options)};
  const auto layer = largest_layer_on_disk(tensors);
  if (const auto cpu = memory.find(DevicePlacement::cpu()); cpu != memory.end() && layer > 0) {
    plan.room = cpu->second - bytes_on(tensors, DevicePlacement::cpu());
    warn_if_too_small(cpu->second, *plan.room, layer);
  }
  plan.page_bytes = page_bytes_for(tensors, plan.room);
  return plan;
}

}  // namespace hortator::accelerator
