#pragma once

#include <ATen/core/Tensor.h>

#include <hortator/training/accelerator_options.hpp>
#include <vector>

namespace hortator::accelerator {

class Training;

/// Accelerator::clip_grad_norm_. @collective where gradients are sharded or divided
at::Tensor clip_norm(Training& training, const std::vector<at::Tensor>& parameters, double max_norm,
                     double norm_type = 2, const ClipOptions& options = {});
/// Accelerator::clip_grad_value_.
void clip_value(Training& training, const std::vector<at::Tensor>& parameters, double limit);

}  // namespace hortator::accelerator
