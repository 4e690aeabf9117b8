#include "machine/device/memory.hpp"

#include <ATen/Context.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAGuard.h>
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
          report_out_of_memory(asked);
        });
  });
}

/// Makes a device that this process uses already the thread's: page-locked memory belongs to no device, and a thread
/// that has not chosen its device would make a context on the node's first one.
class AnyUsedDevice {
 public:
  AnyUsedDevice() {
    if (const auto used = c10::cuda::getDeviceIndexWithPrimaryContext()) guard_.reset_device({c10::kCUDA, *used});
  }

 private:
  c10::cuda::OptionalCUDAGuard guard_;
};

}  // namespace

std::shared_ptr<void> page_locked(std::size_t bytes) {
  if (bytes == 0) return nullptr;
  const AnyUsedDevice guard;
  void* memory = nullptr;
  const auto code = cudaHostAlloc(&memory, bytes, cudaHostAllocDefault);
  if (code != cudaSuccess) {
    static_cast<void>(cudaGetLastError());
    throw Error({.what = text::concat("Cannot allocate ", units::bytes(bytes),
                                      " of page-locked memory: ", cudaGetErrorString(code)),
                 .why = "only copies from and to such memory overlap with the device's work",
                 .hint = "request more memory from the scheduler: page-locked memory counts as memory of the job"});
  }
  return {memory, [](void* begin) {
            const AnyUsedDevice guard;
            C10_CUDA_CHECK_WARN(cudaFreeHost(begin));
          }};
}

void on_out_of_memory(std::function<void(std::uint64_t)> act) {
  if (act) observe_once();
  const std::scoped_lock lock(act_mutex);
  current_act = std::move(act);
}

void report_out_of_memory(std::uint64_t asked_bytes) {
  std::unique_lock lock(act_mutex);
  const auto act = current_act;
  lock.unlock();
  if (act) act(asked_bytes);
}

}  // namespace hortator::machine
