#pragma once

#include <ATen/core/Tensor.h>

#include <span>
#include <utility>
#include <vector>

#include "paging/interception/claims.hpp"
#include "paging/interception/storage_provider.hpp"

namespace hortator::paging {

/// From now on each operator with an argument that carries the key (paged_key.hpp) and whose storage is claimed calls
/// the custodian before it reads, and after it is done. Operators without such arguments are not touched. The first
/// call also tries out whether this LibTorch does as it must, and throws Error if not.
void start_interception();

/// Keeps claimed storages present from its construction to its end, so that raw pointers to them are good. Tensors
/// whose storage nobody has claimed are left alone.
class Hold {
 public:
  Hold(std::span<const at::Tensor> tensors, Access access);
  ~Hold();
  Hold(const Hold&) = delete;
  Hold& operator=(const Hold&) = delete;

 private:
  std::vector<Claim> held_;
};

}  // namespace hortator::paging
