#include "machine/device/memory.hpp"

#include <ATen/Context.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAException.h>
#include <cuda_runtime_api.h>

#include <hortator/error.hpp>
#include <mutex>
#include <utility>

#include "core/text/text.hpp"
#include "core/text/units.hpp"

namespace hortator::machine {
namespace {

std::mutex act_mutex;
std::function<void(std::uint64_t)> current_act;

// LibTorch cannot remove observers, so a single one forwards to the current function.
void observe_once() {
  static std::once_flag observed;
  std::call_once(observed, [] {
    at::globalContext().lazyInitDevice(c10::kCUDA);  // the allocator exists only afterwards
    c10::cuda::CUDACachingAllocator::attachOutOfMemoryObserver(
        [](std::int64_t /*device*/, std::size_t asked, std::size_t /*total*/, std::size_t /*free*/) {
          std::unique_lock lock(act_mutex);
          const auto act = current_act;
          lock.unlock();
          if (act) act(asked);
        });
  });
}

}  // namespace

std::shared_ptr<void> page_locked(std::size_t bytes) {
  if (bytes == 0) return nullptr;
  void* memory = nullptr;
  const auto code = cudaHostAlloc(&memory, bytes, cudaHostAllocDefault);
  if (code != cudaSuccess) {
    static_cast<void>(cudaGetLastError());
    throw Error({.what = text::concat("Cannot allocate ", units::bytes(bytes),
                                      " of page-locked memory: ", cudaGetErrorString(code)),
                 .why = "only copies from and to such memory overlap with the device's work",
                 .hint = "request more memory from the scheduler, or raise the limit (ulimit -l)"});
  }
  return {memory, [](void* begin) { C10_CUDA_CHECK_WARN(cudaFreeHost(begin)); }};
}

void on_out_of_memory(std::function<void(std::uint64_t)> act) {
  if (act) observe_once();
  const std::scoped_lock lock(act_mutex);
  current_act = std::move(act);
}

}  // namespace hortator::machine
