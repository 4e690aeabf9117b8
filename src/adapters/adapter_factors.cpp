#include "adapters/adapter_factors.hpp"

#include <c10/core/GradMode.h>

#include <utility>

#include "adapters/adapted_weight.hpp"
#include "interception/claims.hpp"
#include "interception/dispatch_keys.hpp"
#include "interception/weight_operators.hpp"

namespace hortator::adapters {

AdapterFactors::AdapterFactors(std::string name, std::shared_ptr<AdaptedWeight> adapted)
    : Module(std::move(name)), adapted_(std::move(adapted)) {}

AdapterFactors::~AdapterFactors() {
  if (adapted_) adapted_->detach();
}

void AdapterFactors::add(const std::string& name, const at::Tensor& weight, bool is_direct, const at::Tensor& bias) {
  if (is_direct) {
    register_parameter(name, weight, weight.requires_grad());
    return;
  }
  auto factor = register_module(name, std::make_shared<torch::nn::Module>(name));
  factor->register_parameter("weight", weight, weight.requires_grad());
  if (bias.defined()) factor->register_parameter("bias", bias, bias.requires_grad());
}

void AdapterFactors::remove(const std::string& name) {
  if (parameters_.contains(name)) {
    parameters_.erase(name);
  } else {
    unregister_module(name);
  }
}

template <typename... Options>
void AdapterFactors::move(Options... options) {
  Module::to(options...);
  if (!adapted_) return;
  const auto& weight = adapted_->weight();
  if (interception::claim_of(weight) || interception::carries_divided_key(weight) || interception::is_packed(weight))
    return;
  const at::NoGradGuard no_grad;
  weight.set_data(weight.to(options...));
  interception::refresh_weights();
}

void AdapterFactors::to(torch::Device device, torch::Dtype dtype, bool non_blocking) {
  move(device, dtype, non_blocking);
}
void AdapterFactors::to(torch::Dtype dtype, bool non_blocking) { move(dtype, non_blocking); }
void AdapterFactors::to(torch::Device device, bool non_blocking) { move(device, non_blocking); }

}  // namespace hortator::adapters
