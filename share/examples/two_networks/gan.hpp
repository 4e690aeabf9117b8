#pragma once

#include <torch/nn/functional/activation.h>
#include <torch/nn/modules/linear.h>

#include <cmath>
#include <cstdint>
#include <hortator/data.hpp>
#include <numbers>

namespace gan {

constexpr std::int64_t noise = 8;

/// Points on a circle around the origin; the target is not used.
struct Circle {
  std::size_t size() const { return 4096; }
  hortator::Example<> get(std::int64_t i) const {
    const double angle = 2 * std::numbers::pi * static_cast<double>(i) / 4096;
    return {at::tensor({static_cast<float>(std::cos(angle)), static_cast<float>(std::sin(angle))}), at::zeros({1})};
  }
};

/// Generates a point from noise.
struct GeneratorImpl : torch::nn::Module {
  torch::nn::Linear in = register_module("in", torch::nn::Linear(noise, 64));
  torch::nn::Linear out = register_module("out", torch::nn::Linear(64, 2));
  at::Tensor forward(const at::Tensor& z) { return out(at::relu(in(z))); }
};
TORCH_MODULE(Generator);

/// Rates how much a point looks like one of the circle.
struct CriticImpl : torch::nn::Module {
  torch::nn::Linear in = register_module("in", torch::nn::Linear(2, 64));
  torch::nn::Linear out = register_module("out", torch::nn::Linear(64, 1));
  at::Tensor forward(const at::Tensor& x) { return out(at::leaky_relu(in(x), 0.2)); }
};
TORCH_MODULE(Critic);

inline at::Tensor critic_loss(const at::Tensor& real, const at::Tensor& fake) {
  return torch::nn::functional::softplus(-real).mean() + torch::nn::functional::softplus(fake).mean();
}
inline at::Tensor generator_loss(const at::Tensor& fake) { return torch::nn::functional::softplus(-fake).mean(); }

}  // namespace gan
