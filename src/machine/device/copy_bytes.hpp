#pragma once

#include <c10/core/Device.h>

#include <cstddef>

namespace hortator::machine {

/// Copies within a device, in the order of its current stream; on the CPU immediately.
void copy_bytes(std::byte* to, const std::byte* from, std::size_t bytes, c10::Device device);

}  // namespace hortator::machine
