#include "simulation/networks/standardized.hpp"

#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>

#include <hortator/error.hpp>

#include "core/text/text.hpp"

namespace hortator::simulation {
namespace {

void take_over(const FeatureScale& to, const FeatureScale& from, const char* what) {
  if (from.mean.numel() != to.mean.numel()) {
    throw UsageError({.what = text::concat("The samples have ", from.mean.numel(), " features in their ", what,
                                           "; the model has ", to.mean.numel()),
                      .why = "each feature is standardised by its own mean and deviation",
                      .hint = "set features_dim in the buffer's settings to the dimension of the model's features"});
  }
  const at::NoGradGuard no_grad;
  at::Tensor(to.mean).copy_(from.mean);
  at::Tensor(to.scale).copy_(from.scale);
}

}  // namespace

Standardized::Standardized(std::shared_ptr<Network> network, FeatureShape shape)
    : network_(register_module("network", std::move(network))), shape_(shape) {
  inputs_ = {register_buffer("input_mean", at::zeros({shape.inputs})),
             register_buffer("input_scale", at::ones({shape.inputs}))};
  outputs_ = {register_buffer("output_mean", at::zeros({shape.outputs})),
              register_buffer("output_scale", at::ones({shape.outputs}))};
}

void Standardized::standardize(const FeatureScale& inputs, const FeatureScale& outputs) {
  take_over(inputs_, inputs, "input");
  take_over(outputs_, outputs, "target");
}

bool Standardized::has_numbers() const {
  const auto is_one = [](const FeatureScale& one) {
    return one.mean.ne(0).any().item<bool>() || one.scale.ne(1).any().item<bool>();
  };
  return is_one(inputs_) || is_one(outputs_);
}

at::Tensor Standardized::along(const at::Tensor& numbers, const at::Tensor& field) const {
  std::vector<std::int64_t> shape(static_cast<std::size_t>(field.dim()), 1);
  shape[static_cast<std::size_t>(shape_.dim < 0 ? field.dim() + shape_.dim : shape_.dim)] = numbers.numel();
  return numbers.view(shape);
}

at::Tensor Standardized::in_units(const at::Tensor& output) const { return output / along(outputs_.scale, output); }

at::Tensor Standardized::compute(const at::Tensor& input) {
  require_features(input, shape_.dim, shape_.inputs, shape_.dim < 0 ? -shape_.dim : shape_.dim + 1);
  const auto result = network_->forward({(input - along(inputs_.mean, input)) / along(inputs_.scale, input)}).front();
  return result * along(outputs_.scale, result) + along(outputs_.mean, result);
}

}  // namespace hortator::simulation
