#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <memory>

namespace hortator::machine {

/// Memory that `device` can address, as a tensor of bytes. It keeps `owner` alive, and nothing else.
at::Tensor byte_view(void* memory, std::size_t bytes, c10::Device device, std::shared_ptr<void> owner = nullptr);

/// Copies within a device, in the order of its current stream; on the CPU immediately.
void copy_bytes(std::byte* to, const std::byte* from, std::size_t bytes, c10::Device device);

}  // namespace hortator::machine
