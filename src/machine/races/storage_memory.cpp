#include "machine/races/storage_memory.hpp"

#include <span>
#include <utility>
#include <vector>

namespace hortator::machine {
namespace {

std::uintptr_t begin_of(c10::StorageImpl& storage) {
  return reinterpret_cast<std::uintptr_t>(storage._mutable_data_ptr_no_checks().get());  // NOLINT
}

std::vector<c10::intrusive_ptr<c10::StorageImpl>>& looked_at() {
  thread_local std::vector<c10::intrusive_ptr<c10::StorageImpl>> storages;
  return storages;
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

PatternedRange used_bytes(const at::Tensor& tensor, const StorageRange& whole) {
  std::int64_t elements = 1;
  for (std::int64_t i = 0; i < tensor.dim(); ++i) elements += (tensor.size(i) - 1) * tensor.stride(i);
  const auto element = tensor.element_size();
  const auto begin = whole.begin + static_cast<std::size_t>(tensor.storage_offset()) * element;
  const std::span sizes(tensor.sizes().data(), tensor.sizes().size());
  const std::span strides(tensor.strides().data(), tensor.strides().size());
  return {begin, begin + static_cast<std::size_t>(elements) * element, pattern_of(sizes, strides, element)};
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
            auto storage = weak.lock();
            if (!storage) return true;
            const bool has_other_memory = begin_of(*storage) != begin;
            looked_at().push_back(std::move(storage));
            return has_other_memory;
          }};
}

StorageDiscarder::~StorageDiscarder() {
  while (!looked_at().empty()) {
    const auto storage = std::move(looked_at().back());
    looked_at().pop_back();
  }
}

}  // namespace hortator::machine
