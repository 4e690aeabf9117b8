#include "machine/races/storage_memory.hpp"

#include <utility>

namespace hortator::machine {
namespace {

std::uintptr_t begin_of(c10::StorageImpl& storage) {
  return reinterpret_cast<std::uintptr_t>(storage._mutable_data_ptr_no_checks().get());  // NOLINT
}

}  // namespace

c10::StorageImpl* storage_of(const at::Tensor& tensor) {
  if (!tensor.defined() || !tensor.has_storage()) return nullptr;
  return tensor.unsafeGetTensorImpl()->unsafe_storage().unsafeGetStorageImpl();
}

std::optional<StorageRange> range_of(const at::Tensor& tensor) {
  auto* const storage = storage_of(tensor);
  if (storage == nullptr || begin_of(*storage) == 0 || storage->nbytes() == 0) return std::nullopt;
  const auto begin = begin_of(*storage);
  return StorageRange{begin, begin + storage->nbytes()};
}

StorageRange used_range(const at::Tensor& tensor, const StorageRange& whole) {
  std::int64_t elements = 1;
  for (std::int64_t i = 0; i < tensor.dim(); ++i) elements += (tensor.size(i) - 1) * tensor.stride(i);
  const auto element = tensor.element_size();
  const auto begin = whole.begin + static_cast<std::size_t>(tensor.storage_offset()) * element;
  return {begin, begin + static_cast<std::size_t>(elements) * element};
}

bool is_allocated(c10::StorageImpl& storage) {
  return storage.allocator() != nullptr && storage._mutable_data_ptr_no_checks().get_deleter() != nullptr;
}

MemoryOwner owner_of(const at::Tensor& tensor, const StorageRange& range, int timeline) {
  auto weak = tensor.storage().getWeakStorageImpl();
  return {.begin = range.begin,
          .end = range.end,
          .storage = storage_of(tensor),
          .timeline = tensor.is_cpu() ? host_timeline : timeline,
          .is_gone = [weak = std::move(weak), begin = range.begin] {
            const auto storage = weak.lock();
            return !storage || begin_of(*storage) != begin;
          }};
}

}  // namespace hortator::machine
