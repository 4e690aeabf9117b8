#pragma once

#include <cstdint>

namespace hortator {

/// Memory of a rank's device, as LibTorch's allocator counts it. Excludes other processes. Zero on the CPU.
struct DeviceMemory {
  std::uint64_t allocated_bytes = 0;  ///< used by tensors now
  std::uint64_t peak_bytes = 0;       ///< peak use by tensors
  std::uint64_t reserved_bytes = 0;   ///< reserved on the device: by tensors, or cached for the next ones
};

}  // namespace hortator
