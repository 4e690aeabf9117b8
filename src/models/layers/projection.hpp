#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/modules/linear.h>

namespace hortator::models {

/// x weight^T, as at::linear computes it. Up to four rows of float32 on a CPU with AVX-512, without gradients, are
/// multiplied at the speed at which the weight can be read, about twice that of at::linear.
at::Tensor project(const at::Tensor& x, const at::Tensor& weight);

/// The layer's output. torch::nn::Linear itself adds its bias in an operator of its own if x has more than two
/// dimensions, which is slower (share/doc/gpu.md).
at::Tensor project(const at::Tensor& x, torch::nn::Linear& layer);

}  // namespace hortator::models
