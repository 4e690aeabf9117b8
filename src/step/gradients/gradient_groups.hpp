#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

namespace hortator::step {

/// Gradients of one device and type, for one multi-tensor kernel.
struct GradientGroup {
  c10::Device device;
  at::ScalarType type;
  std::vector<at::Tensor> gradients;
};

/// The defined gradients of `parameters`, each once, by device and type. A sparse gradient is coalesced and gives its
/// values. Empty gradients are left out.
std::vector<GradientGroup> gradient_groups(const std::vector<at::Tensor>& parameters);

}  // namespace hortator::step
