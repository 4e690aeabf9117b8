#include "simulation/derivatives/linearization.hpp"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <torch/csrc/autograd/autograd.h>

#include <cmath>
#include <hortator/error.hpp>
#include <limits>
#include <optional>
#include <vector>

#include "core/text/text.hpp"
#include "simulation/derivatives/plain_attention.hpp"

namespace hortator::simulation {
namespace {

using Sizes = std::vector<std::int64_t>;

/// Where the graph of a function begins: the values of `input`.
at::Tensor beginning_of(const at::Tensor& input) {
  if (input.is_floating_point() || input.is_complex())
    return (input.is_inference() ? input.clone() : input.detach()).requires_grad_();
  throw UsageError({.what = text::concat("The input to differentiate by has the type ", input.scalar_type()),
                    .why = "there are no derivatives with respect to whole numbers",
                    .hint = "differentiate by an input of floating-point numbers"});
}

[[noreturn]] void refuse_constant_output() {
  throw UsageError({.what = "The output has no derivatives",
                    .why = "it does not depend on the input by operators that LibTorch can differentiate",
                    .hint = "choose another input or output; compiled packages only infer"});
}

void require_shape(const char* what, const at::Tensor& tensor, const char* like, const at::Tensor& model) {
  if (tensor.sizes() == model.sizes()) return;
  throw UsageError(
      {.what = text::concat("The ", what, " has the shape ", tensor.sizes(), ", the ", like, ' ', model.sizes()),
       .hint = text::concat("give the ", what, " the shape of the ", like)});
}

Sizes joined(at::IntArrayRef first, at::IntArrayRef second) {
  Sizes all(first.begin(), first.end());
  all.insert(all.end(), second.begin(), second.end());
  return all;
}

}  // namespace

Linearization::Linearization(const TensorFunction& function, const at::Tensor& input, Order order) {
  const at::AutoGradMode recorded(true);
  std::optional<PlainAttention> differentiable;
  if (order == Order::twice) differentiable.emplace();
  input_ = beginning_of(input);
  output_ = function(input_);
  if (!output_.defined() || !output_.requires_grad()) refuse_constant_output();
}

// 0 where the output depends on parameters only, as forces of an energy that is linear do.
at::Tensor Linearization::gradient_of(const at::Tensor& cotangent) const {
  const auto gradient = torch::autograd::grad({output_}, {input_}, {cotangent}, /*retain_graph=*/true,
                                              /*create_graph=*/cotangent.requires_grad(), /*allow_unused=*/true)
                            .front();
  return gradient.defined() ? gradient : at::zeros_like(input_.detach());
}

at::Tensor Linearization::adjoint(const at::Tensor& cotangent) const {
  require_shape("cotangent", cotangent, "output", output_);
  return gradient_of(cotangent.detach().to(output_.options()));
}

// A gradient is linear in its cotangent; the derivative of that is the transposed map, at any cotangent.
at::Tensor Linearization::tangent(const at::Tensor& direction) const {
  require_shape("direction", direction, "input", input_);
  const auto cotangent = at::zeros_like(output_.detach()).requires_grad_();
  const auto gradient = gradient_of(cotangent);
  if (!gradient.requires_grad()) return at::zeros_like(cotangent).detach();  // of a function with steps: 0 everywhere
  const auto tangent = torch::autograd::grad({gradient}, {cotangent}, {direction.detach().to(gradient.options())},
                                             /*retain_graph=*/true, /*create_graph=*/false, /*allow_unused=*/true)
                           .front();
  return tangent.defined() ? tangent : at::zeros_like(cotangent).detach();
}

void Linearization::require_real() const {
  if (!input_.is_complex() && !output_.is_complex()) return;
  throw UsageError({.what = text::concat("The Jacobian of ", output_.scalar_type(), " by ", input_.scalar_type()),
                    .why = "a function of complex numbers need not have one derivative in all directions",
                    .hint = "use the tangent in a direction, or the adjoint of a cotangent"});
}

at::Tensor Linearization::jacobian() const {
  require_real();
  const auto rows = output_.numel();
  const auto result = at::zeros({rows, input_.numel()}, input_.options());
  const auto cotangent = at::zeros({rows}, output_.options());
  for (std::int64_t row = 0; row < rows; ++row) {
    cotangent.zero_();
    cotangent[row].fill_(1);
    result[row].copy_(gradient_of(cotangent.view(output_.sizes())).flatten());
  }
  return result.view(joined(output_.sizes(), input_.sizes()));
}

// One backward pass for an element of all samples' outputs: each sample gets its own derivatives.
at::Tensor Linearization::sample_jacobian() const {
  require_real();
  if (output_.dim() == 0 || input_.dim() == 0 || output_.size(0) != input_.size(0)) {
    throw UsageError(
        {.what = text::concat("The input has the shape ", input_.sizes(), ", the output ", output_.sizes()),
         .why = "the derivatives of each sample need samples in the first dimension of both",
         .hint = "ask for all derivatives: [output..., input...]"});
  }
  const auto samples = output_.size(0);
  const auto output = output_.sizes().slice(1);
  const auto rows = c10::multiply_integers(output);
  const auto result = at::zeros(joined({samples, rows}, input_.sizes().slice(1)), input_.options());
  const auto cotangent = at::zeros({samples, rows}, output_.options());
  for (std::int64_t row = 0; row < rows && samples > 0; ++row) {
    cotangent.zero_();
    cotangent.select(1, row).fill_(1);
    result.select(1, row).copy_(gradient_of(cotangent.view(output_.sizes())));
  }
  require_independent_samples(result);
  return result.view(joined(joined({samples}, output), input_.sizes().slice(1)));
}

// Weights that differ between samples must appear in the gradient of the same sample only.
void Linearization::require_independent_samples(const at::Tensor& jacobian) const {
  const auto samples = output_.size(0);
  if (samples < 2 || jacobian.numel() == 0) return;
  constexpr double golden = 0.6180339887498949;
  const auto weights = at::arange(samples, output_.options()).mul_(golden).frac_().add_(1);
  Sizes of_output(static_cast<std::size_t>(output_.dim()), 1);
  Sizes of_input(static_cast<std::size_t>(input_.dim()), 1);
  of_output[0] = of_input[0] = samples;
  const auto found = gradient_of(weights.view(of_output).expand_as(output_).contiguous());
  const auto expected = jacobian.sum(1) * weights.to(jacobian.options()).view(of_input);
  const auto scale = jacobian.abs().sum(1).max().item<double>();
  const double epsilon = input_.scalar_type() == at::kDouble ? std::numeric_limits<double>::epsilon()
                                                             : std::numeric_limits<float>::epsilon();
  const auto difference = (found - expected).abs().max().item<double>();
  if (!(difference > std::sqrt(epsilon) * scale)) return;
  throw UsageError({.what = "The samples of the output depend on each other's inputs",
                    .why = "a Jacobian of each sample would mix the derivatives of others into its own",
                    .hint = "ask for all derivatives: [output..., input...]"});
}

}  // namespace hortator::simulation
