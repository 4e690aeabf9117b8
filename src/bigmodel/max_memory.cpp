#include <hortator/bigmodel/big_models.hpp>
#include <hortator/error.hpp>

#include "bigmodel/max_memory.hpp"
#include "machine/device/device.hpp"
#include "machine/memory/memory_limit.hpp"
#include "runtime/world.hpp"

namespace hortator {

namespace bigmodel {

MaxMemory max_memory(const NodeMemory& node) {
  MaxMemory memory;
  for (const auto& [device, bytes] : node.free_by_device) {
    if (node.local_size == 1 || device == node.own_device)
      memory.emplace(DevicePlacement::cuda(device), static_cast<Bytes>(bytes));
  }
  memory.emplace(DevicePlacement::cpu(), static_cast<Bytes>(node.host / static_cast<std::size_t>(node.local_size)));
  return memory;
}

}  // namespace bigmodel

MaxMemory get_max_memory(const State& state) {
  const auto host = machine::available_memory();
  if (!host) {
    throw Error({.what = "The free memory of this node is unknown",
                 .why = "/proc/meminfo cannot be read, and a device map needs it",
                 .hint = "set max_memory yourself"});
  }
  bigmodel::NodeMemory node{.host = *host, .local_size = state.world().topology().local_size};
  if (!state.device().is_cpu()) {
    node.own_device = state.device().index();
    for (const auto device : machine::visible_devices()) {
      if (node.local_size == 1 || device == state.device())
        node.free_by_device.emplace(device.index(), machine::free_memory(device));
    }
  }
  return bigmodel::max_memory(node);
}

}  // namespace hortator
