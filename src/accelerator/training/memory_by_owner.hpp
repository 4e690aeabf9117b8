#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <hortator/bigmodel/device_memory.hpp>
#include <string>
#include <utility>
#include <vector>

namespace hortator::accelerator {

class Training;

/// Zeroes also on a device that nobody has used yet.
DeviceMemory device_memory(c10::Device device);
/// The same for trackers, by name.
std::vector<std::pair<std::string, double>> device_memory_values(const DeviceMemory& memory);

/// Bytes on one device of what a run has prepared. Memory that several tensors share counts once.
struct MemoryByOwner {
  std::uint64_t parameters = 0;
  std::uint64_t buffers = 0;
  std::uint64_t gradients = 0;
  std::uint64_t optimizers = 0;  ///< what they remember
  std::uint64_t pages = 0;       ///< frames for parameters that are elsewhere while nobody uses them
};
MemoryByOwner memory_by_owner(const Training& training, c10::Device device);

/// One line for people. What is left of the allocated bytes is called activations and others.
std::string describe(const MemoryByOwner& owners, const DeviceMemory& memory);

/// As long as this lives, the log is told who has the memory of the training's device when it runs out, whatever the
/// program was doing. Nothing on the CPU.
class MemoryWatch {
 public:
  explicit MemoryWatch(const Training& training);
  ~MemoryWatch();
  MemoryWatch(const MemoryWatch&) = delete;
  MemoryWatch& operator=(const MemoryWatch&) = delete;

 private:
  bool watches_;
};

}  // namespace hortator::accelerator
