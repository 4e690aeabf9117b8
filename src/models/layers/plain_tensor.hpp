#pragma once

#include <ATen/core/Tensor.h>

namespace hortator::models {

/// Whether elements can be read and written without operators: contiguous float32 of a CPU, no gradients, no autocast,
/// and no dispatch key of Hortator or LibTorch that would have to see an operator.
bool is_plain(const at::Tensor& x);

/// A plain tensor with so few elements that calling operators takes longer than computing.
bool is_plain_and_small(const at::Tensor& x);

}  // namespace hortator::models
