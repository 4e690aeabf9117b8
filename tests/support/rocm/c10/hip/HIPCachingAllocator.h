#pragma once

// What Hortator uses of the allocator of a LibTorch for ROCm: fake_hip.cpp defines the function.
#include <cstddef>
#include <cstdint>
#include <functional>

namespace c10::cuda::CUDACachingAllocator {

using OutOfMemoryObserver =
    std::function<void(std::int64_t device, std::size_t allocated, std::size_t device_total, std::size_t device_free)>;
void attachOutOfMemoryObserver(OutOfMemoryObserver observer);

}  // namespace c10::cuda::CUDACachingAllocator
