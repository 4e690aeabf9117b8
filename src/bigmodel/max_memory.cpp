#include <hortator/bigmodel/big_models.hpp>
#include <hortator/error.hpp>

#include "bigmodel/max_memory.hpp"
#include "machine/device/cuda.hpp"
#include "machine/memory/memory_limit.hpp"
#include "runtime/world.hpp"

namespace hortator {

namespace bigmodel {

MaxMemory max_memory(const MemoryFacts& facts) {
  MaxMemory memory;
  for (const auto& [device, bytes] : facts.free_of_devices) {
    if (facts.local_size == 1 || device == facts.own_device)
      memory.emplace(Place::cuda(device), static_cast<Bytes>(bytes));
  }
  memory.emplace(Place::cpu(), static_cast<Bytes>(facts.host / static_cast<std::size_t>(facts.local_size)));
  return memory;
}

}  // namespace bigmodel

MaxMemory get_max_memory(const State& state) {
  const auto host = machine::available_memory();
  if (!host) {
    throw Error({.what = "the system does not say how much memory there is",
                 .why = "/proc/meminfo cannot be read, and no plan can be made without it",
                 .hint = "give max_memory yourself"});
  }
  bigmodel::MemoryFacts facts{.host = *host, .local_size = state.world().topology().local_size};
  if (state.device().is_cuda()) facts.own_device = state.device().index();
  for (int device = 0; state.device().is_cuda() && device < machine::visible_device_count(); ++device) {
    if (facts.local_size == 1 || device == facts.own_device)
      facts.free_of_devices.emplace(device, machine::free_memory(device));
  }
  return bigmodel::max_memory(facts);
}

}  // namespace hortator
