#pragma once

#include <cstdint>

namespace hortator {

/// Of a rank's device, by LibTorch's allocator: what others have taken there is not in it. Zero on the CPU.
struct DeviceMemory {
  std::uint64_t allocated_bytes = 0;  ///< of tensors, now
  std::uint64_t peak_bytes = 0;       ///< the most that tensors have had at once
  std::uint64_t reserved_bytes = 0;   ///< taken from the device: tensors, and what is kept for the next ones
};

}  // namespace hortator
