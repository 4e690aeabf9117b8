#pragma once

#include <ATen/core/Tensor.h>

#include <span>
#include <utility>
#include <vector>

#include "interception/claims.hpp"

namespace hortator::interception {

/// Intercepts each operator with an argument that carries paged_key (dispatch_keys.hpp) and whose storage is claimed:
/// the provider is called before the operator reads, and after it is done. Other operators are not affected. The first
/// call also tests whether this LibTorch supports that, and throws Error if not.
void start_interception();

/// Keeps claimed storages present while it lives, so that raw pointers to them are valid. Ignores tensors whose storage
/// is not claimed.
class Hold {
 public:
  Hold(std::span<const at::Tensor> tensors, Access access);
  ~Hold();
  Hold(const Hold&) = delete;
  Hold& operator=(const Hold&) = delete;

 private:
  std::vector<Claim> held_;
};

/// Tests with a small tensor that operators are intercepted before they read, in forward and backward, that views
/// inherit the key, and that results do not. Throws Error with what failed.
void check_interception();

}  // namespace hortator::interception
