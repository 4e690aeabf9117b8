#pragma once

#include <ATen/core/Tensor.h>

/// The frozen weights of prepared models, which stay in memory whatever autograd saves. LibTorch marks no tensor as a
/// parameter: one without gradient looks like an input.
namespace hortator::step {

/// Remembers the memory of those of the parameters that are frozen, as long as it exists.
void note_frozen_weights(const std::vector<at::Tensor>& parameters);
/// Whether a tensor, or the one that it is a view of, lies in memory that was noted.
bool is_frozen_weight(const at::Tensor& tensor);

}  // namespace hortator::step
