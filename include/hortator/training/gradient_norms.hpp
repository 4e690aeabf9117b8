#pragma once

#include <ATen/core/Tensor.h>

#include <hortator/export.hpp>
#include <string>
#include <vector>

namespace hortator {

class Accelerator;
class ModelBase;

struct GradientNorms {
  std::vector<std::string> names = {};  ///< of the parameters that are trained, in the module's order
  at::Tensor norms = {};                ///< [parameters], float64, on their device; 0 without a gradient
};

/// The norm of each parameter's whole gradient, equal on all ranks, whatever is sharded or divided. `norm_type` is 2,
/// 1, infinity or another number above 0. Call it between backward() and the optimizer's step, before clipping or
/// after: gradients of fp16 are unscaled, as by clip_grad_norm_. The host does not wait for a device. In a micro-step
/// that only accumulates, and within LocalSGD, they are those of this rank's gradients. @collective where gradients are
/// sharded or divided
HORTATOR_API GradientNorms gradient_norms(Accelerator& accelerator, const ModelBase& model, double norm_type = 2);

}  // namespace hortator
