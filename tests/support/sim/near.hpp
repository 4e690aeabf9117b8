#pragma once

#include <ATen/core/ivalue.h>

#include <vector>

#include "support/sim/streams.hpp"

namespace hortator::sim {

inline bool is_far(const at::Tensor& tensor) { return tensor.defined() && tensor.device().type() == c10::kPrivateUse1; }

/// A CPU tensor of the same elements, which does not keep the memory alive.
at::Tensor near_view(const at::Tensor& tensor);

/// Adds the bytes of a tensor to `uses`, if they lie in a block of a device or of page-locked memory.
void add_use(std::vector<BlockUse>& uses, const at::Tensor& tensor, bool writes);

/// `value` with change(tensor) in place of each tensor.
template <typename Change>
c10::IValue with_tensors(const c10::IValue& value, Change change) {
  if (value.isTensor()) return change(value.toTensor());
  if (value.isTensorList()) {
    c10::List<at::Tensor> list;
    for (const at::Tensor& tensor : value.toTensorVector()) list.push_back(change(tensor));
    return list;
  }
  if (value.isOptionalTensorList()) {
    c10::List<std::optional<at::Tensor>> list;
    for (const auto& tensor : value.toOptionalTensorVector())
      list.push_back(tensor && tensor->defined() ? std::optional(change(*tensor)) : std::nullopt);
    return list;
  }
  return value;
}

template <typename Act>
void for_tensors(const c10::IValue& value, Act act) {
  with_tensors(value, [&](const at::Tensor& tensor) {
    act(tensor);
    return tensor;
  });
}

}  // namespace hortator::sim
