#pragma once

#include <c10/core/Device.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

namespace hortator::machine {

/// Allocates exactly `bytes` of page-locked host memory. (LibTorch's allocator rounds up to the next power of two,
/// which suits small, short-lived blocks.) Allocating and releasing is slow and may wait for the device. Throws Error
/// when there is not enough memory, and in a build for CPUs only.
std::shared_ptr<void> page_locked(std::size_t bytes);

/// Registers `act`, which is called when memory of a device has finally run out: by the thread that requested it,
/// with the requested bytes, before the allocation throws. One per process; an empty function removes it. Does nothing
/// in a build for CPUs only.
void on_out_of_memory(std::function<void(std::uint64_t asked_bytes)> act);
/// Calls what was registered, for allocations that LibTorch's allocator does not know of.
void report_out_of_memory(std::uint64_t asked_bytes);

/// Gives the device the memory back that LibTorch keeps for the next tensors. Slow: waits for the device.
void release_cached_memory(c10::Device device);

}  // namespace hortator::machine
