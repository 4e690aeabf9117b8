// The derivatives of a TrainedModel, which are computed as it infers.
#include <ATen/core/grad_mode.h>

#include <hortator/error.hpp>
#include <utility>

#include "core/text/text.hpp"
#include "machine/cpu/openmp_threads.hpp"
#include "simulation/derivatives/linearization.hpp"
#include "simulation/training/network_call.hpp"
#include "simulation/training/results.hpp"
#include "simulation/training/trained_model.hpp"

namespace hortator::simulation {
namespace {

std::size_t checked_number(std::int64_t number, std::size_t count, const char* what) {
  if (number >= 0 && static_cast<std::uint64_t>(number) < count) return static_cast<std::size_t>(number);
  throw UsageError({.what = text::concat("There is no ", what, " with the number ", number),
                    .why = text::concat("the batch or the model has ", text::count(static_cast<long long>(count), what),
                                        ", and C counts from 0, Fortran from 1"),
                    .hint = text::concat("pass the number of an ", what)});
}

}  // namespace

Linearization TrainedModel::linearized(const TensorBatch& batch, DerivativeOf which, bool twice) {
  if (batch.inputs.empty())
    throw UsageError({.what = "The batch has no input", .hint = "bind an array as HORTATOR_INPUT"});
  auto inputs = adapted(batch.inputs);
  const auto place = checked_number(which.input, inputs.size(), "input");
  const auto function = [&](const at::Tensor& input) {
    inputs[place] = input;
    const auto outputs = outputs_of(inputs);
    return outputs[checked_number(which.output, outputs.size(), "output")];
  };
  const auto input = inputs[place];
  return {function, input, twice ? Linearization::Order::twice : Linearization::Order::once};
}

void TrainedModel::adjoint(const TensorBatch& batch, const at::Tensor& cotangent, const at::Tensor& gradient) {
  const machine::OpenmpThreads threads(policy_.threads);
  require_local_parameters("adjoint");
  const auto model = linearized(batch, {}, /*twice=*/false);
  const auto weights = adapted({cotangent}).front();
  const auto result = computed(name_, batch.inputs, [&] { return model.adjoint(weights); });
  const at::NoGradGuard no_grad;
  write_result(result, gradient, "gradient");
}

void TrainedModel::tangent(const TensorBatch& batch, DerivativeOf which, const at::Tensor& direction,
                           const at::Tensor& tangent) {
  const machine::OpenmpThreads threads(policy_.threads);
  require_local_parameters("tangent");
  const auto model = linearized(batch, which, /*twice=*/true);
  const auto along = adapted({direction}).front();
  const auto result = computed(name_, batch.inputs, [&] { return model.tangent(along); });
  const at::NoGradGuard no_grad;
  write_result(result, tangent, "tangent");
}

void TrainedModel::jacobian(const TensorBatch& batch, DerivativeOf which, const at::Tensor& jacobian) {
  const machine::OpenmpThreads threads(policy_.threads);
  require_local_parameters("jacobian");
  const auto model = linearized(batch, which, /*twice=*/false);
  const auto dims = model.output().dim() + model.input().dim();
  if (jacobian.dim() != dims && jacobian.dim() != dims - 1) {
    throw UsageError({.what = text::concat("The array of the Jacobian has ", text::count(jacobian.dim(), "dimension")),
                      .why = text::concat("the output has the shape ", model.output().sizes(), ", the input ",
                                          model.input().sizes()),
                      .hint = text::concat("bind [samples, output..., input...] with ", dims - 1,
                                           " dimensions for each sample's "
                                           "derivatives, or [output..., input...] with ",
                                           dims, " for all")});
  }
  const bool is_whole = jacobian.dim() == dims;
  const auto result =
      computed(name_, batch.inputs, [&] { return is_whole ? model.jacobian() : model.sample_jacobian(); });
  const at::NoGradGuard no_grad;
  write_result(result, jacobian, "Jacobian");
}

}  // namespace hortator::simulation
