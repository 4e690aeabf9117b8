#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <hortator/bigmodel/device_memory.hpp>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace hortator::accelerator {

class Training;

/// The memory in use on a device; all zero on the CPU and on a device that was not used yet.
DeviceMemory device_memory(c10::Device device);
/// The same as named values for trackers.
std::vector<std::pair<std::string, double>> device_memory_values(const DeviceMemory& memory);

/// Bytes that prepared objects hold on one device. Memory that several tensors share counts once.
struct MemoryByOwner {
  std::uint64_t parameters = 0;
  std::uint64_t buffers = 0;
  std::uint64_t gradients = 0;
  std::uint64_t optimizers = 0;  ///< their state (moments)
  std::uint64_t pages = 0;       ///< frames of parameters that are stored elsewhere between uses
};
MemoryByOwner memory_by_owner(const Training& training, c10::Device device);

/// Describes the owners in one line. The remainder of the allocated bytes is called activations and others.
std::string describe(const MemoryByOwner& owners, const DeviceMemory& memory);

/// What is said of a device that has run out of memory. Threads that may not look at the owners get totals only: all
/// but `training_thread` and those that run its backward pass.
std::string out_of_memory_report(const Training& training, std::thread::id training_thread, c10::Device device);

/// Logs who holds the device's memory whenever the device runs out of it, as long as this lives. Does nothing on the
/// CPU.
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
