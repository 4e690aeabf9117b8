#pragma once

#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/function.h>

namespace hortator::parallel {

/// Makes gradients that arrive at `tensor`, a divided tensor, those of its part: for code that sees only autograd's
/// graph of `tensor` (a user's own autograd function, backward(), hooks). Returns the node, which `tensor` keeps alive.
const torch::autograd::Node* bridge_to_part(const at::Tensor& tensor, const at::Tensor& part);

/// Whether a hook watches the gradient that arrives at the bridge.
bool is_watched(const torch::autograd::Node& bridge);

}  // namespace hortator::parallel
