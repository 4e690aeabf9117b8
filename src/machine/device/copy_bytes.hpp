#pragma once

#include <c10/core/Device.h>

#include <cstddef>

namespace hortator::machine {

/// From one place on a device to another, in the order of its current stream; on the CPU at once.
void copy_bytes(std::byte* to, const std::byte* from, std::size_t bytes, c10::Device device);

}  // namespace hortator::machine
