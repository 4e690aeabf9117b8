#pragma once

#include <ATen/core/Tensor.h>

#include <unordered_set>
#include <vector>

namespace hortator::step {

/// A set of tensors, compared by identity.
using TensorSet = std::unordered_set<const void*>;  // by TensorImpl

inline TensorSet tensor_set(const std::vector<at::Tensor>& tensors) {
  TensorSet set;
  for (const auto& tensor : tensors) set.insert(tensor.unsafeGetTensorImpl());
  return set;
}

}  // namespace hortator::step
