#pragma once

#include <cstdint>
#include <hortator/device_memory.hpp>
#include <string>

#include "accelerator/training.hpp"

namespace hortator::accelerator {

DeviceMemory device_memory(c10::Device device);

/// Bytes on one device of what a run has prepared. Memory that several tensors share counts once.
struct MemoryByOwner {
  std::uint64_t parameters = 0;
  std::uint64_t buffers = 0;
  std::uint64_t gradients = 0;
  std::uint64_t optimizers = 0;  ///< what they remember
};
MemoryByOwner memory_by_owner(const Training& training, c10::Device device);

/// One line for people. What is left of the allocated bytes is called activations and others.
std::string describe(const MemoryByOwner& owners, const DeviceMemory& memory);

/// Tells the log who has this rank's device's memory, where there is a device.
void explain_out_of_memory(const Training& training);

}  // namespace hortator::accelerator
