#include "machine/device/memory.hpp"

#include <hip/hip_runtime_api.h>

#include <hortator/error.hpp>
#include <mutex>
#include <utility>

#include "core/text/text.hpp"
#include "core/text/units.hpp"

namespace hortator::machine {
namespace {

std::mutex act_mutex;
std::function<void(std::uint64_t)> current_act;

}  // namespace

std::shared_ptr<void> page_locked(std::size_t bytes) {
  if (bytes == 0) return nullptr;
  void* memory = nullptr;
  const auto code = hipHostMalloc(&memory, bytes, hipHostMallocDefault);
  if (code != hipSuccess) {
    static_cast<void>(hipGetLastError());
    throw Error({.what = text::concat("Cannot allocate ", units::bytes(bytes),
                                      " of page-locked memory: ", hipGetErrorString(code)),
                 .why = "only copies from and to such memory overlap with the device's work",
                 .hint = "request more memory from the scheduler: page-locked memory counts as memory of the job"});
  }
  return {memory, [](void* begin) { static_cast<void>(hipHostFree(begin)); }};
}

// LibTorch's allocator for ROCm is not asked to report: only allocations of Hortator's own do.
void on_out_of_memory(std::function<void(std::uint64_t)> act) {
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
