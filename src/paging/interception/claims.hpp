#pragma once

#include <ATen/core/Tensor.h>

#include <memory>

#include "paging/interception/storage_provider.hpp"

/// Which storages are managed by which provider: one table for the process, because operators are intercepted wherever
/// they run. A claim keeps its storage alive.
namespace hortator::paging {

struct Claim {
  StorageProvider* provider = nullptr;  ///< null if the storage is not claimed
  int number = 0;                       ///< the provider's number of the storage
  std::shared_ptr<void> keeps_alive = {};

  explicit operator bool() const { return provider != nullptr; }
};

/// Throws UsageError if the storage is claimed already.
void claim(const at::Storage& storage, Claim claim);
void disclaim(const at::Storage& storage) noexcept;

Claim claim_of(const at::Tensor& tensor);
Claim claim_of(const at::Storage& storage);

}  // namespace hortator::paging
