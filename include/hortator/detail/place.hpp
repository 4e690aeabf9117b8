#pragma once

#include <c10/core/Device.h>

#include <concepts>
#include <hortator/detail/batch_source.hpp>
#include <hortator/detail/parts.hpp>

namespace hortator::detail {

/// Moves a batch to a device: its tensors, however deep they lie. What is no tensor stays as it is.
template <typename T>
void place(T& batch, c10::Device device) {
  if constexpr (std::same_as<T, at::Tensor>) {
    batch = data::to_device(batch, device);
  } else if constexpr (Structure<T>) {
    Parts<T>::visit(batch, [&](const PartLabel&, auto& part) { place(part, device); });
  }
}

}  // namespace hortator::detail
