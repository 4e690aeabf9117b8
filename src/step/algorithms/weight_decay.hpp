#pragma once

#include <ATen/core/Tensor.h>

#include <hortator/training/named_optimizer.hpp>

namespace hortator::step {

/// Applies "weight_decay" to the parameter if "decoupled_weight_decay" is set, otherwise to the gradient. Returns the
/// gradient to step by.
at::Tensor decay_weights(at::Tensor& parameter, const at::Tensor& gradient, const NamedOptions& options);

}  // namespace hortator::step
