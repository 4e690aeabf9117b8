#pragma once

#include <torch/optim/optimizer.h>

#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "step/accelerator_session.hpp"
#include "step/gradients/protection.hpp"
#include "step/gradients/scaled_gradients.hpp"
#include "step/moments/optimizer_state.hpp"
#include "step/optimizer/fused_step.hpp"
#include "step/optimizer/optimizer_parameters.hpp"
#include "step/optimizer/sharded_optimizer.hpp"
#include "step/step_ahead.hpp"

namespace hortator::step {

/// Functions and settings of the training that an optimizer depends on.
struct OptimizerHooks {
  std::function<bool()> gradients_synchronised;  ///< whether they are in this micro-step
  std::function<void()> synchronise;             ///< finishes gradients in transfer (plain loss.backward())
  std::function<void()> stepped = {};            ///< called at the end of each step
  std::function<void(const std::vector<at::Tensor>&)> cleared;  ///< called when these parameters' gradients are cleared
  StepKernel kernel = StepKernel::fused;
  Protection* protection = nullptr;  ///< null unless updates are protected
  /// Whether some optimizer has new gradients that are not finite. Waits for the device.
  std::function<bool()> any_nonfinite = {};
  /// The mean of a loss over all ranks. Throws unless all ranks call it. @collective
  std::function<at::Tensor(const at::Tensor&)> mean_loss = {};
  /// Ends this rank's part in all collectives, so that no other rank waits for it.
  std::function<void(std::string_view reason)> abandon = {};
};

/// Which of a TrainEvalOptimizer's weights are in the parameters.
enum class WeightUse { train, evaluate };

/// A prepared optimizer; handles (Optimizer) share it.
class OptimizerCore {
 public:
  /// `optimizer` is borrowed.
  OptimizerCore(torch::optim::Optimizer& optimizer, std::shared_ptr<const AcceleratorSession> session,
                OptimizerHooks hooks);
  /// Unscales gradients before each step: they come from losses that `scaler` has scaled.
  void scale_by(GradScaler& scaler) {
    scaled_ = std::make_unique<ScaledGradients>([this] { return gradient_holders(); }, scaler);
  }
  /// Null without a scaler.
  ScaledGradients* scaled() const { return scaled_.get(); }

  /// Makes it step slices of parameters that ShardedOptimizer::take_over() gets.
  void shard(bool gradients_are_whole, const parallel::ArrayPlacement& moments, const mpi::Communicator& host) {
    shards_ = std::make_unique<ShardedOptimizer>(*optimizer_, gradients_are_whole, moments, host);
    shards_have_gradients_ = !gradients_are_whole;
  }
  /// Null unless sharded.
  ShardedOptimizer* shards() const { return shards_.get(); }

  torch::optim::Optimizer& optimizer() const {
    check_alive();
    return *optimizer_;
  }
  bool wraps(const torch::optim::Optimizer& optimizer) const { return optimizer_ == &optimizer; }
  /// Replaces what the optimizer remembers, and its options, as load_optimizer() does.
  void load(const ParameterNames& names, const StateDict& state);
  /// Call it when the optimizer's state may have got other tensors.
  void note_state();
  /// Whether the optimizer, which is borrowed and does not report its end, exists and has a state. One of its tensors
  /// has been watched since the last note_state(): no other object owns it.
  bool keeps_state() const { return of_state_ && !of_state_->expired(); }
  /// Whether the optimizer at the stored address is a different object (the prepared one was destroyed).
  bool is_replaced() const;
  /// One step. Does nothing in a micro-step whose gradients are not synchronised, as zero_grad().
  void step();
  /// One step of an optimizer that calls `closure`, maybe several times. It gets the mean loss over all ranks, and this
  /// returns the first one. @collective
  at::Tensor step(const torch::optim::Optimizer::LossClosure& closure);
  void zero_grad(bool set_to_none);
  /// zero_grad() in any micro-step: what was added up for the next update is lost.
  void drop_gradients(bool set_to_none = true);
  /// Gradients may be there from now on.
  void note_backward() { has_gradients_ = true; }
  bool has_gradients() const { return has_gradients_; }
  /// Puts the weights for `use` into the parameters, on all ranks. Throws unless it is a TrainEvalOptimizer.
  /// @collective
  void use_weights(WeightUse use);
  /// The user's parameters, even where the optimizer steps slices.
  std::vector<at::Tensor> parameters() const { return shards_ ? shards_->parameters() : parameters_of(*optimizer_); }
  /// The tensors whose grad() is set: parameters, or their slices.
  std::vector<at::Tensor> gradient_holders() const {
    return shards_have_gradients_ ? parameters_of(*optimizer_) : parameters();
  }
  /// Whether the last step was skipped because a gradient overflowed. With late verdicts this is the step before the
  /// last, unless settle() was called since.
  bool step_was_skipped() const { return skipped_; }
  /// Whether it left its last update out under protection, and still holds the gradients of that.
  bool holds_refused_gradients() const { return holds_refused_; }
  void note_new_gradients() { holds_refused_ = false; }
  /// Call it before the gradients of these tensors are clamped, which makes infinite ones finite: protection judges
  /// them as they were. Waits for the device, unless a scaler has looked at them.
  void look_before_clamping(const std::vector<at::Tensor>& holders);
  /// Whether its gradients are not finite, or were not before they were clamped. Waits for the device.
  bool has_nonfinite_gradients() const { return was_nonfinite_ || has_nonfinite_gradient(gradient_holders()); }
  bool was_nonfinite() const { return was_nonfinite_; }
  /// Its save() and load() do nothing, though it may remember something.
  void note_forgets_on_save() { forgets_on_save_ = true; }
  bool forgets_on_save() const { return forgets_on_save_; }
  /// With late verdicts: waits for that of the last step, and takes back its step counts if it was skipped.
  void settle();
  /// With late verdicts: drops the pending verdict and sets step_was_skipped(), because the optimizer's state was
  /// loaded or comes from another rank.
  void forget_step_ahead(bool skipped);
  void check_alive() const { session_->check_alive("optimizer"); }

 private:
  void step_synchronised();
  void step_ahead();
  void step_now(const std::function<void()>& kernels);
  bool arrive_at_step();
  void step_shards(const std::function<void()>& kernels);
  bool sees_nonfinite();
  void record_step(StepRecording& recording);
  void run_fused(const StepMode& mode);
  void require_whole_updates() const;
  void require_elementwise_of_parts() const;

  torch::optim::Optimizer* optimizer_;
  std::vector<c10::weak_intrusive_ptr<c10::TensorImpl>> given_;       ///< parameters at the time of prepare()
  std::optional<c10::weak_intrusive_ptr<c10::TensorImpl>> of_state_;  ///< a tensor of the optimizer's state
  std::shared_ptr<const AcceleratorSession> session_;
  OptimizerHooks hooks_;
  std::unique_ptr<ScaledGradients> scaled_;
  std::unique_ptr<ShardedOptimizer> shards_;
  bool shards_have_gradients_ = false;
  bool skipped_ = false;
  bool holds_refused_ = false;
  bool was_nonfinite_ = false;  ///< gradients of this update, before they were clamped
  bool has_gradients_ = false;
  bool forgets_on_save_ = false;
  std::shared_ptr<StepAhead> ahead_;  ///< the last step, until its verdict is read
};

}  // namespace hortator::step
