#pragma once

#include <ATen/core/Tensor.h>

#include <memory>

#include "paging/interception/storage_provider.hpp"

/// Which storages are looked after, and by whom: one list for the process, because operators find their way to us from
/// anywhere. A storage that is claimed lives on.
namespace hortator::paging {

struct Claim {
  StorageProvider* provider = nullptr;  ///< null: nobody's
  int number = 0;                       ///< by which the custodian knows the storage
  std::shared_ptr<void> keeps_alive = {};

  explicit operator bool() const { return provider != nullptr; }
};

/// Throws UsageError if somebody has it already.
void claim(const at::Storage& storage, Claim claim);
void disclaim(const at::Storage& storage) noexcept;

Claim claim_of(const at::Tensor& tensor);
Claim claim_of(const at::Storage& storage);

}  // namespace hortator::paging
