// What a model computes without being trained.
#include <c10/core/InferenceMode.h>
#include <torch/csrc/autograd/autograd.h>

#include "core/text/text.hpp"
#include "machine/cpu/openmp_threads.hpp"
#include "simulation/training/network_call.hpp"
#include "simulation/training/trained_model.hpp"

namespace hortator::simulation {
namespace {

void write_result(const at::Tensor& result, const at::Tensor& to, const char* what) {
  if (result.sizes() != to.sizes()) {
    throw UsageError({.what = text::concat("The ", what, " has the shape ", result.sizes(), ", its array ", to.sizes()),
                      .hint = "bind an array of that shape"});
  }
  if (!c10::canCast(result.scalar_type(), to.scalar_type())) {
    throw UsageError(
        {.what = text::concat("The ", what, " has the type ", result.scalar_type(), ", its array ", to.scalar_type()),
         .why = "its fractions or imaginary parts would be lost",
         .hint = "bind an array of floating-point numbers, or of complex ones"});
  }
  at::Tensor(to).copy_(result);
}

}  // namespace

TrainedModel::Tensors TrainedModel::outputs_of(const Tensors& inputs) {
  set_training(false);
  const auto values = adapted(inputs);
  return computed(name_, inputs, [&] {
    if (accelerator_.mixed_precision() == Precision::no) return network_->forward(values);
    const auto mixed = accelerator_.autocast();
    auto results = network_->forward(values);
    for (auto& result : results) detail::to_float32(result);  // as results of prepared models are
    return results;
  });
}

bool TrainedModel::writes_directly(const TensorBatch& batch) {
  if (accelerator_.mixed_precision() != Precision::no) return false;
  set_training(false);
  return computed(name_, batch.inputs, [&] { return network_->forward_into(adapted(batch.inputs), batch.outputs); });
}

void TrainedModel::infer(const TensorBatch& batch) {
  const machine::OpenmpThreads threads(policy_.threads);
  require_local_parameters("infer");
  const c10::InferenceMode inference;
  if (writes_directly(batch)) return;
  const auto results = outputs_of(batch.inputs);
  if (results.size() != batch.outputs.size()) {
    throw UsageError({.what = text::concat("The model ", text::quote(name_), " has ",
                                           text::count(static_cast<long long>(results.size()), "output"),
                                           ", the batch has arrays for ", batch.outputs.size()),
                      .hint = "bind one array for each output (HORTATOR_OUTPUT)"});
  }
  for (std::size_t i = 0; i < results.size(); ++i) write_result(results[i], batch.outputs[i], "output");
}

void TrainedModel::adjoint(const TensorBatch& batch, const at::Tensor& cotangent, const at::Tensor& gradient) {
  const machine::OpenmpThreads threads(policy_.threads);
  require_local_parameters("adjoint");
  auto inputs = adapted(batch.inputs);
  const auto differentiated = input_to_differentiate(batch);
  inputs.front() = differentiated;
  const auto outputs = outputs_of(inputs);
  if (outputs.empty() || !outputs.front().requires_grad()) {
    throw UsageError({.what = text::concat("The model ", text::quote(name_), " has no derivatives"),
                      .why = "its output does not depend on its first input by differentiable operators",
                      .hint = "use a model that LibTorch can differentiate: compiled packages only infer"});
  }
  const auto& output = outputs.front();
  const auto weights = adapted({cotangent}).front();
  if (weights.sizes() != output.sizes()) {
    throw UsageError(
        {.what = text::concat("The cotangent has the shape ", weights.sizes(), ", the output ", output.sizes())});
  }
  const auto gradients = computed(name_, batch.inputs, [&] {
    return torch::autograd::grad({output}, {differentiated}, {weights.to(output.scalar_type())});
  });
  const at::NoGradGuard no_grad;
  write_result(gradients.front(), gradient, "gradient");
}

at::Tensor TrainedModel::input_to_differentiate(const TensorBatch& batch) const {
  if (batch.inputs.empty())
    throw UsageError({.what = "The batch has no input", .hint = "bind an array as HORTATOR_INPUT"});
  const auto input = adapted({batch.inputs.front()}).front();
  if (input.is_floating_point() || input.is_complex()) return input.detach().requires_grad_();
  throw UsageError({.what = text::concat("The first input has the type ", input.scalar_type()),
                    .why = "there are no derivatives with respect to whole numbers",
                    .hint = "bind an array of floating-point numbers first"});
}

}  // namespace hortator::simulation
