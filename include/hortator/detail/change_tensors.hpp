#pragma once

#include <concepts>
#include <hortator/detail/batch_source.hpp>
#include <hortator/detail/parts.hpp>

namespace hortator::detail {

/// Replaces each tensor of a batch, at any depth, by change(tensor). Other values stay as they are.
template <typename T, typename Change>
void change_tensors(T& batch, const Change& change) {
  if constexpr (std::same_as<T, at::Tensor>) {
    batch = change(batch);
  } else if constexpr (Structure<T>) {
    Parts<T>::visit(batch, [&](const PartLabel&, auto& part) { change_tensors(part, change); });
  }
}

}  // namespace hortator::detail
