#pragma once

#include <c10/core/Allocator.h>

#include <cstddef>
#include <memory>

namespace hortator::sim {

/// LibTorch's allocator of page-locked memory for the devices. A block is used again when the copies that were under
/// way at its release have ended.
c10::Allocator* host_allocator();

/// Exactly `bytes` of page-locked memory. Releasing it waits for all devices, as CUDA does. Both make a context on the
/// calling thread's device.
std::shared_ptr<void> page_locked_memory(std::size_t bytes);

bool is_page_locked(const void* address);

}  // namespace hortator::sim
