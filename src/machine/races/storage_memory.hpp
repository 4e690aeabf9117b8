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
/// From the first to the last element in it.
StorageRange used_range(const at::Tensor& tensor, const StorageRange& whole);
/// Whether an allocator gets the memory back. Not so for views of memory that other objects own.
bool is_allocated(c10::StorageImpl& storage);
/// The tensor's storage as the owner of memory that the stream of `timeline` has allocated.
MemoryOwner owner_of(const at::Tensor& tensor, const StorageRange& range, int timeline);

}  // namespace hortator::machine
