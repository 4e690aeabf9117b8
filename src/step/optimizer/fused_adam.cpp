#include "step/optimizer/fused_adam.hpp"

#include <ATen/ops/_fused_adam.h>
#include <ATen/ops/_fused_adamw.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <memory>

#include "step/capture/step_recording.hpp"
#include "step/optimizer/fused_fit.hpp"
#include "step/step_ahead.hpp"

namespace hortator::step {
namespace {

using namespace torch::optim;

struct AdamKernel {
  using Options = AdamOptions;
  using State = AdamParamState;
  template <typename... Arguments>
  static void run(Arguments&&... arguments) {
    at::_fused_adam_(std::forward<Arguments>(arguments)...);
  }
};

struct AdamWKernel {
  using Options = AdamWOptions;
  using State = AdamWParamState;
  template <typename... Arguments>
  static void run(Arguments&&... arguments) {
    at::_fused_adamw_(std::forward<Arguments>(arguments)...);
  }
};

// Parameters of one kernel call, which have the same device, type and step count.
struct AdamBatch {
  c10::Device device;
  at::ScalarType type;
  std::int64_t step;
  std::size_t bytes = 0;
  std::vector<at::Tensor> parameters = {};
  std::vector<at::Tensor> gradients = {};
  std::vector<at::Tensor> means = {};
  std::vector<at::Tensor> squares = {};
};

AdamBatch& batch_for(std::vector<AdamBatch>& batches, const at::Tensor& parameter, const at::Tensor& mean,
                     std::int64_t step) {
  for (auto& batch : batches) {
    const bool has_room = has_room_beside(batch.bytes, parameter, mean);
    if (has_room && batch.step == step && batch.device == parameter.device() && batch.type == parameter.scalar_type())
      return batch;
  }
  return batches.emplace_back(AdamBatch{.device = parameter.device(), .type = parameter.scalar_type(), .step = step});
}

// Creates the state at the parameter's first gradient, as torch::optim does.
template <typename State>
State& state_of(Optimizer& optimizer, const at::Tensor& parameter, const StepMode& mode) {
  auto& state = optimizer.state()[parameter.unsafeGetTensorImpl()];
  if (!state) {
    if (mode.recording != nullptr) throw_first_gradient();
    auto fresh = std::make_unique<State>();
    fresh->exp_avg(at::zeros_like(parameter));
    fresh->exp_avg_sq(at::zeros_like(parameter));
    state = std::move(fresh);
  }
  return static_cast<State&>(*state);
}

template <typename State>
void take_back_step(Optimizer& optimizer, const at::Tensor& parameter) {
  const auto found = optimizer.state().find(parameter.unsafeGetTensorImpl());
  if (found == optimizer.state().end()) return;
  auto& state = static_cast<State&>(*found->second);
  state.step(state.step() - 1);
}

template <typename State>
std::vector<AdamBatch> batches_of(Optimizer& optimizer, const OptimizerParamGroup& group, const StepMode& mode) {
  std::vector<AdamBatch> batches;
  for (const auto& parameter : group.params()) {
    if (!parameter.grad().defined()) continue;
    auto& state = state_of<State>(optimizer, parameter, mode);
    if (mode.recording == nullptr) state.step(state.step() + 1);  // a recorded step counts at each replay
    if (mode.ahead != nullptr)
      mode.ahead->when_skipped([&optimizer, parameter] { take_back_step<State>(optimizer, parameter); });
    lay_out_as(state.exp_avg(), parameter);
    lay_out_as(state.exp_avg_sq(), parameter);
    auto& batch = batch_for(batches, parameter, state.exp_avg(), state.step());
    batch.bytes += parameter.nbytes();
    batch.parameters.push_back(parameter);
    batch.gradients.push_back(gradient_of(parameter));
    batch.means.push_back(state.exp_avg());
    batch.squares.push_back(state.exp_avg_sq());
  }
  return batches;
}

// The kernel reads a step count for each tensor, on the tensor's device. All are equal within a batch.
template <typename Kernel, typename Rate>
void run(const AdamBatch& batch, const typename Kernel::Options& options, const StepMode& mode, const at::Tensor& step,
         const Rate& rate) {
  const std::vector<at::Tensor> steps(batch.parameters.size(), step);
  const auto [beta1, beta2] = options.betas();
  Kernel::run(batch.parameters, batch.gradients, batch.means, batch.squares, at::TensorList(), steps, rate, beta1,
              beta2, options.weight_decay(), options.eps(), /*amsgrad=*/false, /*maximize=*/false,
              /*grad_scale=*/std::nullopt, not_finite_for(mode, batch.device));
}

template <typename Kernel>
void run(const AdamBatch& batch, const typename Kernel::Options& options, const StepMode& mode) {
  const auto step =
      at::scalar_tensor(static_cast<double>(batch.step), at::TensorOptions(batch.device).dtype(at::kFloat));
  run<Kernel>(batch, options, mode, step, options.lr());
}

/// One batch of a recorded step, with the numbers that it reads on the device and the conditions of its validity.
template <typename Kernel>
class RecordedAdamBatch {
 public:
  using State = typename Kernel::State;
  using Options = typename Kernel::Options;

  RecordedAdamBatch(Optimizer& optimizer, std::size_t group, AdamBatch batch)
      : optimizer_(optimizer), group_(group), batch_(std::move(batch)), options_(options()) {
    for (const auto& parameter : batch_.parameters) addresses_.push_back(parameter.const_data_ptr());
  }

  const AdamBatch& batch() const { return batch_; }
  const Options& options() const { return static_cast<const Options&>(optimizer_.param_groups()[group_].options()); }
  double count_step() const {
    for (const auto& parameter : batch_.parameters) state_of(parameter)->step(state_of(parameter)->step() + 1);
    return static_cast<double>(state_of(batch_.parameters.front())->step());
  }
  bool is_good() const {
    auto now = options();
    now.lr(options_.lr());
    if (!(now == options_)) return false;
    for (std::size_t i = 0; i < batch_.parameters.size(); ++i) {
      const auto* state = state_of(batch_.parameters[i]);
      const bool is_unchanged = state != nullptr && state->exp_avg().is_same(batch_.means[i]) &&
                                state->exp_avg_sq().is_same(batch_.squares[i]) &&
                                batch_.parameters[i].const_data_ptr() == addresses_[i];
      if (!is_unchanged) return false;
    }
    return true;
  }

 private:
  State* state_of(const at::Tensor& parameter) const {
    const auto found = optimizer_.state().find(parameter.unsafeGetTensorImpl());
    return found != optimizer_.state().end() ? static_cast<State*>(found->second.get()) : nullptr;
  }

  Optimizer& optimizer_;
  std::size_t group_;
  AdamBatch batch_;
  Options options_;
  std::vector<const void*> addresses_;
};

template <typename Kernel>
void record(Optimizer& optimizer, std::size_t group, AdamBatch batch, const StepMode& mode) {
  auto& recording = *mode.recording;
  const auto kept = std::make_shared<RecordedAdamBatch<Kernel>>(optimizer, group, std::move(batch));
  const auto step = recording.number(kept->batch().device, [kept] { return kept->count_step(); });
  const auto rate = recording.number(kept->batch().device, [kept] { return kept->options().lr(); });
  recording.require([kept] { return kept->is_good(); });
  run<Kernel>(kept->batch(), kept->options(), mode, step, rate);
}

template <typename Kernel>
bool fits(const OptimizerParamGroup& group) {
  const auto& options = group.options();
  if (typeid(options) != typeid(typename Kernel::Options)) return false;
  return !static_cast<const typename Kernel::Options&>(options).amsgrad() && fits_fused_kernel(group);
}

template <typename Kernel>
bool step(Optimizer& optimizer, const StepMode& mode) {
  const at::NoGradGuard no_grad;
  const auto& groups = optimizer.param_groups();
  if (!std::all_of(groups.begin(), groups.end(), fits<Kernel>)) return false;
  for (std::size_t group = 0; group < groups.size(); ++group) {
    for (auto& batch : batches_of<typename Kernel::State>(optimizer, groups[group], mode)) {
      if (mode.recording != nullptr) {
        record<Kernel>(optimizer, group, std::move(batch), mode);
      } else {
        run<Kernel>(batch, static_cast<const typename Kernel::Options&>(groups[group].options()), mode);
      }
    }
  }
  return true;
}

}  // namespace

bool fused_adam(Adam& optimizer, const StepMode& mode) { return step<AdamKernel>(optimizer, mode); }
bool fused_adam(AdamW& optimizer, const StepMode& mode) { return step<AdamWKernel>(optimizer, mode); }

}  // namespace hortator::step
