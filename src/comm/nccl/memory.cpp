#include "comm/nccl/memory.hpp"

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include "comm/nccl/library.hpp"

#include <exception>

#include "comm/nccl/error.hpp"
#include "core/log.hpp"
#include "core/text/text.hpp"
#include "core/text/units.hpp"
#include "machine/device/device.hpp"
#include "machine/device/memory.hpp"

namespace hortator::comm {
namespace {

// During stack unwinding the device may be waiting for peers that never arrive, and waiting for the device would hang:
// then the memory is kept until the process ends.
void free_memory(void* begin, const std::weak_ptr<NcclHandle>& owner, NcclOrder& order, c10::Device device) noexcept {
  if (std::uncaught_exceptions() > 0) return;
  try {
    machine::wait_until_idle(device);
    if (const auto handle = owner.lock()) handle->forget_memory(begin);
    order.run_alone([&] { check_nccl(ncclMemFree(begin), "ncclMemFree"); });
  } catch (const std::exception& error) {
    log::warn("Memory of the nccl communicator was not freed: ", error.what());
  }
}

// Whether an allocation failed because memory is missing: NCCL has the same code for all errors of CUDA. It takes
// memory in whole pages of the device.
bool lacks_memory(c10::Device device, std::size_t bytes) {
  constexpr std::size_t device_page = std::size_t{2} << 20;
  return machine::free_memory(device) < bytes + device_page;
}

// What is missing may be in LibTorch's cache, which knows nothing of NCCL's allocations.
void* take_memory(NcclOrder& order, c10::Device device, std::size_t bytes) {
  void* begin = nullptr;
  auto code = ncclSuccess;
  const auto try_once = [&] { code = ncclMemAlloc(&begin, bytes); };
  order.run_alone(try_once);
  if (code == ncclUnhandledCudaError) {
    machine::release_cached_memory(device);
    order.run_alone(try_once);
  }
  if (code == ncclUnhandledCudaError && lacks_memory(device, bytes)) {
    machine::report_out_of_memory(bytes);
    throw Error({.what = text::concat(device.str(), " is out of memory. NCCL needs ", units::bytes(bytes),
                                      " more for buffers that devices exchange"),
                 .why = "the program's tensors have the rest of the device's memory",
                 .hint = "use a smaller batch, or shard the model with ZeRO"});
  }
  check_nccl(code, "ncclMemAlloc");
  return begin;
}

}  // namespace

at::Tensor nccl_allocate(const std::shared_ptr<NcclHandle>& handle, c10::Device device, std::int64_t elements,
                         at::ScalarType type) {
  const auto options = at::TensorOptions().dtype(type).device(device);
  if (elements == 0) return at::empty({0}, options);
  const auto bytes = static_cast<std::size_t>(elements) * at::elementSize(type);
  auto* begin = take_memory(*handle->order(), device, bytes);
  const auto free = [owner = std::weak_ptr(handle), order = handle->order(), device](void* memory) {
    free_memory(memory, owner, *order, device);
  };
  try {
    handle->add_memory(begin, bytes);
  } catch (...) {
    free(begin);
    throw;
  }
  return at::from_blob(begin, {elements}, free, options, device);
}

}  // namespace hortator::comm
