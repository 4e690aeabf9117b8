#include "comm/nccl/memory.hpp"

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <nccl.h>

#include <exception>

#include "comm/nccl/error.hpp"
#include "core/log.hpp"

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

}  // namespace

at::Tensor nccl_allocate(const std::shared_ptr<NcclHandle>& handle, c10::Device device, std::int64_t elements,
                         at::ScalarType type) {
  const auto options = at::TensorOptions().dtype(type).device(device);
  if (elements == 0) return at::empty({0}, options);
  const auto bytes = static_cast<std::size_t>(elements) * at::elementSize(type);
  void* begin = nullptr;
  handle->order()->run_alone([&] { check_nccl(ncclMemAlloc(&begin, bytes), "ncclMemAlloc"); });
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
