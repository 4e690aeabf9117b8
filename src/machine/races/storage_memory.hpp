#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>

#include "machine/races/memory_uses.hpp"

namespace hortator::machine {

/// Addresses [begin, end).
struct StorageRange {
  std::uintptr_t begin;
  std::uintptr_t end;
};

/// Null if the tensor has none.
c10::StorageImpl* storage_of(const at::Tensor& tensor);
/// The memory of the tensor's storage. Empty if there is none, as for pages that are absent.
std::optional<StorageRange> range_of(const at::Tensor& tensor);
/// The bytes of its elements.
PatternedRange used_bytes(const at::Tensor& tensor, const StorageRange& whole);
/// Whether an allocator gets the memory back. Not so for views of memory that other objects own.
bool is_allocated(c10::StorageImpl& storage);
/// The tensor's storage as the owner of memory that the stream of `timeline` has allocated. Its is_gone() needs a
/// StorageDiscarder around the lock of its caller.
MemoryOwner owner_of(const at::Tensor& tensor, const StorageRange& range, int timeline);

/// A thread that looks at a storage that other threads release meanwhile may become its last owner. The storage is then
/// released by the destructor of this object, which is made before a lock is taken: to release memory, programs take
/// locks of their own.
class StorageDiscarder {
 public:
  StorageDiscarder() = default;
  ~StorageDiscarder();
  StorageDiscarder(const StorageDiscarder&) = delete;
  StorageDiscarder& operator=(const StorageDiscarder&) = delete;
};

}  // namespace hortator::machine
