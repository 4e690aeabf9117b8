#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

namespace hortator::step {

/// Gradients that one multi-tensor kernel takes together.
struct GradientGroup {
  c10::Device device;
  at::ScalarType type;
  std::vector<at::Tensor> gradients;
};

/// The gradients that these parameters have, each once, by device and type. Of sparse ones the values, every entry
/// once; empty ones are left out.
std::vector<GradientGroup> gradient_groups(const std::vector<at::Tensor>& parameters);

}  // namespace hortator::step
