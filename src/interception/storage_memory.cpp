#include "interception/storage_memory.hpp"

#include <c10/core/Allocator.h>
#include <c10/core/DeviceGuard.h>

#include <hortator/error.hpp>
#include <optional>
#include <utility>

namespace hortator::interception {
namespace {

// A template, so that members that this LibTorch does not have are not looked up.
template <typename Impl>
void forbid_access(Impl& impl, std::string message) {
  if constexpr (AccessCanBeForbidden<Impl>)  // otherwise it could never be allowed again
    impl.release_data_and_set_meta_custom_data_ptr_error_msg_(std::move(message));
}
template <typename Impl>
void allow_access(Impl& impl) {
  if constexpr (AccessCanBeForbidden<Impl>) impl.clear_data_ptr_access_error_msg_();
}

c10::StorageImpl& impl_of(const at::Storage& storage) { return *storage.unsafeGetStorageImpl(); }

void set_memory(const at::Storage& storage, at::DataPtr memory) {
  allow_access(impl_of(storage));
  impl_of(storage).set_data_ptr_noswap(std::move(memory));
}

}  // namespace

void take_memory(const at::Storage& storage, std::string message) {
  auto& impl = impl_of(storage);
  impl.set_data_ptr_noswap({nullptr, storage.device()});
  forbid_access(impl, std::move(message));
}

void lend_memory(const at::Storage& storage, std::byte* memory) { set_memory(storage, {memory, storage.device()}); }

void own_memory(const at::Storage& storage, at::DataPtr memory) noexcept { set_memory(storage, std::move(memory)); }

at::DataPtr new_memory(std::size_t bytes, c10::Device device) {
  const c10::OptionalDeviceGuard there(device.is_cpu() ? std::nullopt : std::optional(device));
  return c10::GetAllocator(device.type())->allocate(bytes);
}

std::byte* memory_of(const at::Storage& storage) {
  return static_cast<std::byte*>(impl_of(storage)._mutable_data_ptr_no_checks().get());
}

void require_memory(const at::Storage& storage) {
  if (memory_of(storage) != nullptr || storage.nbytes() == 0) return;
  throw Error({.what = "A parameter is used that has no values: its offloading or sharding has ended",
               .hint = "to keep the values, call Offload::remove() or Accelerator::free_memory() before that"});
}

}  // namespace hortator::interception
