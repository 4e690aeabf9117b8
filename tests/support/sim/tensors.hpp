#pragma once

#include <ATen/core/Tensor.h>

#include "support/sim/operators/shapes.hpp"

namespace hortator::sim {

/// The allocator of all devices: memory on the calling thread's current device, for its current stream.
c10::Allocator& device_allocator();

/// A new tensor on a device, not filled.
at::Tensor make_tensor(const TensorShape& shape, int device);
/// A tensor that shares the memory of `base`.
at::Tensor make_view(const at::Tensor& base, const TensorShape& shape);
/// Gives a tensor other sizes; its memory grows if need be, and keeps what it has.
void resize_tensor(const at::Tensor& tensor, at::IntArrayRef sizes);

}  // namespace hortator::sim
