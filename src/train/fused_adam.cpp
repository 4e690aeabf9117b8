#include "train/fused_adam.hpp"

#include <ATen/ops/_fused_adam.h>
#include <ATen/ops/_fused_adamw.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/GradMode.h>

#include <algorithm>

#include "train/fused_fit.hpp"

namespace hortator::train {
namespace {

using namespace torch::optim;

struct AdamKind {
  using Options = AdamOptions;
  using State = AdamParamState;
  template <typename... Arguments>
  static void run(Arguments&&... arguments) {
    at::_fused_adam_(std::forward<Arguments>(arguments)...);
  }
};

struct AdamWKind {
  using Options = AdamWOptions;
  using State = AdamWParamState;
  template <typename... Arguments>
  static void run(Arguments&&... arguments) {
    at::_fused_adamw_(std::forward<Arguments>(arguments)...);
  }
};

// What one call of the kernel takes: one device, one type, one number of steps.
struct Batch {
  c10::Device device;
  at::ScalarType type;
  std::int64_t step;
  std::size_t bytes = 0;
  std::vector<at::Tensor> parameters = {};
  std::vector<at::Tensor> gradients = {};
  std::vector<at::Tensor> means = {};
  std::vector<at::Tensor> squares = {};
};

Batch& batch_for(std::vector<Batch>& batches, const at::Tensor& parameter, std::int64_t step) {
  for (auto& batch : batches) {
    const bool has_room = batch.bytes < most_bytes_a_call;
    if (has_room && batch.step == step && batch.device == parameter.device() && batch.type == parameter.scalar_type())
      return batch;
  }
  return batches.emplace_back(Batch{.device = parameter.device(), .type = parameter.scalar_type(), .step = step});
}

// As torch::optim does it: with the parameter's first gradient.
template <typename State>
State& state_of(Optimizer& optimizer, const at::Tensor& parameter) {
  auto& state = optimizer.state()[parameter.unsafeGetTensorImpl()];
  if (!state) {
    auto fresh = std::make_unique<State>();
    fresh->exp_avg(at::zeros_like(parameter));
    fresh->exp_avg_sq(at::zeros_like(parameter));
    state = std::move(fresh);
  }
  return static_cast<State&>(*state);
}

template <typename State>
std::vector<Batch> batches_of(Optimizer& optimizer, const OptimizerParamGroup& group) {
  std::vector<Batch> batches;
  for (const auto& parameter : group.params()) {
    if (!parameter.grad().defined()) continue;
    auto& state = state_of<State>(optimizer, parameter);
    state.step(state.step() + 1);
    lay_out_as(state.exp_avg(), parameter);
    lay_out_as(state.exp_avg_sq(), parameter);
    auto& batch = batch_for(batches, parameter, state.step());
    batch.bytes += parameter.nbytes();
    batch.parameters.push_back(parameter);
    batch.gradients.push_back(gradient_of(parameter));
    batch.means.push_back(state.exp_avg());
    batch.squares.push_back(state.exp_avg_sq());
  }
  return batches;
}

template <typename Kind>
void run(const Batch& batch, const typename Kind::Options& options) {
  // The kernel reads one count for each tensor, on the tensor's device; all are the same here.
  const auto step =
      at::scalar_tensor(static_cast<double>(batch.step), at::TensorOptions(batch.device).dtype(at::kFloat));
  const std::vector<at::Tensor> steps(batch.parameters.size(), step);
  const auto [beta1, beta2] = options.betas();
  Kind::run(batch.parameters, batch.gradients, batch.means, batch.squares, at::TensorList(), steps, options.lr(), beta1,
            beta2, options.weight_decay(), options.eps(), /*amsgrad=*/false, /*maximize=*/false);
}

template <typename Kind>
bool fits(const OptimizerParamGroup& group) {
  const auto& options = group.options();
  if (typeid(options) != typeid(typename Kind::Options)) return false;
  return !static_cast<const typename Kind::Options&>(options).amsgrad() && fits_fused_kernel(group);
}

template <typename Kind>
bool step(Optimizer& optimizer) {
  const at::NoGradGuard no_grad;
  const auto& groups = optimizer.param_groups();
  if (!std::all_of(groups.begin(), groups.end(), fits<Kind>)) return false;
  for (const auto& group : groups) {
    for (const auto& batch : batches_of<typename Kind::State>(optimizer, group)) {
      run<Kind>(batch, static_cast<const typename Kind::Options&>(group.options()));
    }
  }
  return true;
}

}  // namespace

bool fused_adam(Adam& optimizer) { return step<AdamKind>(optimizer); }
bool fused_adam(AdamW& optimizer) { return step<AdamWKind>(optimizer); }

}  // namespace hortator::train
