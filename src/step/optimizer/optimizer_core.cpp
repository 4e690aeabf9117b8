#include "step/optimizer/optimizer_core.hpp"

#include <algorithm>
#include <hortator/error.hpp>
#include <hortator/training/named_optimizer.hpp>

#include "core/text/text.hpp"
#include "machine/memory/freed_memory.hpp"
#include "parallel/tensor/divided_tensor.hpp"
#include "step/capture/step_recording.hpp"
#include "step/moments/optimizer_fields.hpp"
#include "step/tensor_set.hpp"

namespace hortator::step {
namespace {

// Clears gradients as torch::optim does, for parameters that are not in the optimizer's groups.
void zero_gradients_of(const std::vector<at::Tensor>& parameters, bool set_to_none) {
  for (const auto& parameter : parameters) {
    auto& gradient = parameter.mutable_grad();
    if (!gradient.defined()) continue;
    set_to_none ? gradient.reset() : void(gradient.detach_().zero_());
  }
}

}  // namespace

OptimizerCore::OptimizerCore(torch::optim::Optimizer& optimizer, std::shared_ptr<const AcceleratorSession> session,
                             OptimizerHooks hooks)
    : optimizer_(&optimizer), session_(std::move(session)), hooks_(std::move(hooks)) {
  for (const auto& parameter : parameters_of(optimizer)) given_.emplace_back(parameter.getIntrusivePtr());
  note_state();
}

// A sharded optimizer has slices instead of the parameters that it was given.
bool OptimizerCore::is_replaced() const {
  TensorSet known;
  for (const auto& parameter : given_) {
    if (const auto present = parameter.lock()) known.insert(present.get());
  }
  if (shards_) {
    for (const auto& group : shards_->groups()) {
      for (const auto& sharded : group) known.insert(sharded.slice.unsafeGetTensorImpl());
    }
  }
  const auto is_known = [&](const auto& parameter) { return known.contains(parameter.unsafeGetTensorImpl()); };
  const auto present = parameters_of(*optimizer_);
  return !given_.empty() && std::none_of(present.begin(), present.end(), is_known);
}

void OptimizerCore::load(const ParameterNames& names, const StateDict& state) {
  load_optimizer(optimizer(), names, state);
  note_state();
}

void OptimizerCore::note_state() {
  of_state_.reset();
  for (const auto& [parameter, state] : optimizer_->state()) {
    replace_tensors(*state, [this](const at::Tensor& tensor) {
      of_state_.emplace(tensor.getIntrusivePtr());
      return tensor;
    });
    if (of_state_) return;
  }
}

void OptimizerCore::step() {
  check_alive();
  if (!hooks_.gradients_synchronised()) return;
  hooks_.synchronise();
  if (auto* recording = session_->recording()) return record_step(*recording);
  step_synchronised();
  if (hooks_.stepped) hooks_.stepped();
}

void OptimizerCore::step_synchronised() {
  if (scaled_ && scaled_->is_late()) return step_ahead();
  skipped_ = scaled_ && !scaled_->may_step();
  if (skipped_) {
    if (hooks_.protection != nullptr) hooks_.protection->note_overflow(this);
    return;
  }
  step_now([this] { step::step(*optimizer_, hooks_.kernel); });
}

// An optimizer that calls a closure several times compares its results: each call must be one whole update.
void OptimizerCore::require_whole_updates() const {
  const auto refuse = [](const char* feature) {
    throw UsageError({.what = text::concat("step(closure) cannot be used with ", feature),
                      .why = "the optimizer compares losses and gradients of one closure with those of the next",
                      .hint = "turn it off for this optimizer, or use an optimizer that steps without a closure"});
  };
  if (scaled_) refuse("the gradient scaler of Precision::fp16");
  if (shards_) refuse("ZeRO");
  if (hooks_.protection != nullptr) refuse("protection.on_nonfinite");
  if (session_->recording() != nullptr) refuse("accelerator.capture");
  if (std::ranges::any_of(parameters(), parallel::is_divided)) refuse("parallel.tensor or parallel.experts");
  if (!hooks_.gradients_synchronised()) refuse("gradients that are not averaged in this micro-step");
}

at::Tensor OptimizerCore::step(const torch::optim::Optimizer::LossClosure& closure) {
  check_alive();
  require_whole_updates();
  skipped_ = false;
  const auto loss = optimizer_->step([&] {
    const auto one = closure();
    hooks_.synchronise();
    return hooks_.mean_loss(one.detach());
  });
  if (hooks_.stepped) hooks_.stepped();
  return loss;
}

void OptimizerCore::require_elementwise_of_parts() const {
  if (is_elementwise(*optimizer_) || std::ranges::none_of(parameters(), parallel::is_divided)) return;
  throw UsageError({.what = "An optimizer that may look at whole parameters got ones that are divided among ranks",
                    .why = "with parallel.tensor or parallel.experts a rank has only a part of each",
                    .hint = "if it steps element by element, derive it from hortator::ElementwiseOptimizer; otherwise "
                            "use one of torch::optim's AdamW, Adam, SGD, RMSprop and Adagrad"});
}

void OptimizerCore::step_ahead() {
  settle();
  auto ahead = std::make_shared<StepAhead>(scaled_->end_step());
  step_now([&] { run_fused({.ahead = ahead.get()}); });
  scaled_->scaler().expect(ahead->verdict());
  ahead_ = std::move(ahead);
}

void OptimizerCore::step_now(const std::function<void()>& kernels) {
  require_elementwise_of_parts();  // of a resumed run as well, whose first step has a state
  const parallel::PartsOnly each_rank_has;
  const bool may_step = arrive_at_step();
  was_nonfinite_ = false;
  if (!may_step) return note_state();  // which may be in other memory now
  if (shards_) return step_shards(kernels);
  kernels();
  note_state();
}

void OptimizerCore::step_shards(const std::function<void()>& kernels) {
  const bool is_first = optimizer_->state().empty();
  shards_->run_together(kernels, hooks_.abandon);
  note_state();
  shards_->after_step();
  // The first step allocates the state. Return the memory that was freed until now; later steps reuse theirs.
  if (is_first) machine::return_freed_memory();
}

// Returns whether the step is to be done. fp16's scaler has judged the gradients already.
bool OptimizerCore::arrive_at_step() {
  auto* const protection = hooks_.protection;
  if (protection == nullptr) {
    if (shards_) shards_->before_step();
    return true;
  }
  bool nonfinite = !scaled_ && sees_nonfinite();
  if (shards_) nonfinite = shards_->before_step(nonfinite);
  skipped_ = holds_refused_ = protection->forbids_step(this, nonfinite);
  if (skipped_ && shards_) shards_->leave_step();
  if (skipped_) protection->after_skip();
  return !skipped_;
}

bool OptimizerCore::sees_nonfinite() {
  note_new_gradients();
  const bool judges_all = hooks_.any_nonfinite && hooks_.protection->is_first(this);
  return judges_all ? hooks_.any_nonfinite() : has_nonfinite_gradients();
}

void OptimizerCore::look_before_clamping(const std::vector<at::Tensor>& holders) {
  if (scaled_ || was_nonfinite_) return;
  const auto wanted = tensor_set(holders);
  auto mine = gradient_holders();
  std::erase_if(mine, [&](const at::Tensor& one) { return !wanted.contains(one.unsafeGetTensorImpl()); });
  was_nonfinite_ = has_nonfinite_gradient(mine);
}

void OptimizerCore::settle() {
  const auto ahead = std::exchange(ahead_, nullptr);
  if (!ahead) return;
  skipped_ = scaled_->scaler().apply_verdict(ahead->verdict());
  if (skipped_) ahead->take_back();
}

void OptimizerCore::forget_step_ahead(bool skipped) {
  ahead_.reset();
  skipped_ = skipped;
}

// Before each replay the host reads the previous verdict, since the replay overwrites it.
void OptimizerCore::record_step(StepRecording& recording) {
  if (!scaled_) {
    skipped_ = false;
    return run_fused({.recording = &recording});
  }
  recording.before_replay([this] { settle(); });
  const auto ahead = std::make_shared<StepAhead>(scaled_->end_step());
  run_fused({.recording = &recording, .ahead = ahead.get()});
  recording.after_replay([this, ahead] {
    scaled_->scaler().expect(ahead->verdict());
    ahead_ = ahead;
  });
}

void OptimizerCore::run_fused(const StepMode& mode) {
  if (hooks_.kernel == StepKernel::fused && fused_step(*optimizer_, mode)) return note_state();
  const bool is_recorded = mode.recording != nullptr;
  throw UsageError({.what = is_recorded ? "This optimizer's step cannot be recorded (accelerator.capture)"
                                        : "This optimizer cannot step with grad_scaler.late_verdict = true",
                    .why = is_recorded
                               ? "only ATen's fused kernels of AdamW, Adam and SGD read learning rates on the device"
                               : "only ATen's fused kernels of AdamW, Adam and SGD can skip a step on the device",
                    .hint = "use one of these without amsgrad, and leave AcceleratorOptions::fused_optimizer on"});
}

void OptimizerCore::use_weights(WeightUse use) {
  check_alive();
  auto* const modal = dynamic_cast<TrainEvalOptimizer*>(optimizer_);
  if (modal == nullptr) {
    throw UsageError({.what = text::concat("optimizer.", use == WeightUse::train ? "train" : "eval",
                                           "() is called of an optimizer that trains the weights to evaluate"),
                      .why = "there is one set of weights, and nothing to exchange",
                      .hint = "leave the call out, or use ScheduleFreeAdamW"});
  }
  settle();
  const parallel::PartsOnly each_rank_has;
  if (shards_) shards_->before_step();
  use == WeightUse::train ? modal->train() : modal->eval();
  note_state();
  if (shards_) shards_->after_step();
}

void OptimizerCore::zero_grad(bool set_to_none) {
  check_alive();
  if (!hooks_.gradients_synchronised()) return;
  if (scaled_) scaled_->warn_if_stepped();
  drop_gradients(set_to_none);
}

void OptimizerCore::drop_gradients(bool set_to_none) {
  note_new_gradients();
  was_nonfinite_ = has_gradients_ = false;
  if (scaled_) scaled_->note_cleared();
  if (shards_) shards_->leave_step();  // what guards slices cannot be set to zero
  optimizer_->zero_grad(set_to_none);
  if (shards_) zero_gradients_of(shards_->parameters(), set_to_none);
  hooks_.cleared(parameters());
}

}  // namespace hortator::step
