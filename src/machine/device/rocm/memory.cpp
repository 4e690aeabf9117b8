#include <ATen/Context.h>
#include <c10/hip/HIPCachingAllocator.h>
#include <hip/hip_runtime_api.h>

#include "machine/device/kind_memory.hpp"
#include "machine/device/memory.hpp"

namespace hortator::machine {

std::shared_ptr<void> lock_pages(std::size_t bytes, std::string& reason) {
  void* memory = nullptr;
  const auto code = hipHostMalloc(&memory, bytes, hipHostMallocDefault);
  if (code == hipSuccess) return {memory, [](void* begin) { static_cast<void>(hipHostFree(begin)); }};
  static_cast<void>(hipGetLastError());
  reason = hipGetErrorString(code);
  return nullptr;
}

// A LibTorch for ROCm has the allocator under its name for CUDA, in a header of its own.
void observe_out_of_memory() {
  at::globalContext().lazyInitDevice(c10::kCUDA);  // the allocator exists only afterwards
  c10::cuda::CUDACachingAllocator::attachOutOfMemoryObserver([](std::int64_t /*device*/, std::size_t asked,
                                                                std::size_t /*total*/,
                                                                std::size_t /*free*/) { report_out_of_memory(asked); });
}

}  // namespace hortator::machine
