#include <ATen/Context.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAException.h>
#include <cuda_runtime_api.h>

#include "machine/device/kind_memory.hpp"
#include "machine/device/memory.hpp"

namespace hortator::machine {

std::shared_ptr<void> lock_pages(std::size_t bytes, std::string& reason) {
  void* memory = nullptr;
  const auto code = cudaHostAlloc(&memory, bytes, cudaHostAllocDefault);
  if (code == cudaSuccess) return {memory, [](void* begin) { C10_CUDA_CHECK_WARN(cudaFreeHost(begin)); }};
  static_cast<void>(cudaGetLastError());
  reason = cudaGetErrorString(code);
  return nullptr;
}

// LibTorch cannot remove observers, so a single one forwards to the current function.
void observe_out_of_memory() {
  at::globalContext().lazyInitDevice(c10::kCUDA);  // the allocator exists only afterwards
  c10::cuda::CUDACachingAllocator::attachOutOfMemoryObserver([](std::int64_t /*device*/, std::size_t asked,
                                                                std::size_t /*total*/,
                                                                std::size_t /*free*/) { report_out_of_memory(asked); });
}

}  // namespace hortator::machine
