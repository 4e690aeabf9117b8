#pragma once

#include <torch/optim/optimizer.h>

#include <functional>
#include <memory>
#include <vector>

#include "step/gradients/scaled_gradients.hpp"
#include "step/optimizer/fused_step.hpp"
#include "step/optimizer/optimizer_parameters.hpp"
#include "step/optimizer/sharded_optimizer.hpp"
#include "step/session.hpp"
#include "step/step_ahead.hpp"

namespace hortator::step {

/// What stands behind a prepared optimizer's handle.
class OptimizerCore {
 public:
  /// What the rest of the training has to know of, or to say to, an optimizer.
  struct LaunchEnvironment {
    std::function<bool()> gradients_synchronised;  ///< in this micro-step
    std::function<void()> synchronise;  ///< finishes gradients that are still under way (plain loss.backward())
    std::function<void(const std::vector<at::Tensor>&)> cleared;  ///< these parameters' gradients are gone
    StepKernel kernel = StepKernel::fused;
    /// Of a loss, over all ranks; throws where not all of them come to it. @collective
    std::function<at::Tensor(const at::Tensor&)> mean_loss = {};
  };

  /// `optimizer` is borrowed.
  OptimizerCore(torch::optim::Optimizer& optimizer, std::shared_ptr<const Session> session,
                LaunchEnvironment environment);
  /// Its gradients come from losses that `scaler` has scaled.
  void scale_by(GradScaler& scaler) {
    scaled_ = std::make_unique<ScaledGradients>([this] { return gradient_holders(); }, scaler);
  }
  /// Null without a scaler.
  ScaledGradients* scaled() const { return scaled_.get(); }

  /// From now on steps slices of parameters that are taken over. See ShardedOptimizer.
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
  /// Of the optimizer that stands at its address now: is it another one?
  bool has_gone() const;
  /// Does nothing in a micro-step whose gradients are not synchronised, like zero_grad.
  void step();
  /// With the losses of all ranks, as often as the optimizer asks for them. @collective
  at::Tensor step(const torch::optim::Optimizer::LossClosure& closure);
  void zero_grad(bool set_to_none);
  /// As the user gave them.
  std::vector<at::Tensor> parameters() const { return shards_ ? shards_->parameters() : parameters_of(*optimizer_); }
  /// The tensors that have the gradients: parameters, or their slices.
  std::vector<at::Tensor> gradient_holders() const {
    return shards_have_gradients_ ? parameters_of(*optimizer_) : parameters();
  }
  /// Was the last step left out, because some gradient had overflowed? With late verdicts: the one before it, unless
  /// settle() was called since.
  bool step_was_skipped() const { return skipped_; }
  /// With late verdicts: waits for the one over the last step, so that what the optimizer counts is right.
  void settle();
  /// With late verdicts, where others decide what the optimizer holds: the last step is theirs.
  void forget_step_ahead(bool skipped);
  void check_alive() const { session_->check_alive("optimizer"); }

 private:
  void step_ahead();
  void step_now(const std::function<void()>& kernels);
  void record_step(StepRecording& recording);
  void run_fused(const StepManner& manner);
  void require_whole_updates() const;

  torch::optim::Optimizer* optimizer_;
  std::vector<c10::weak_intrusive_ptr<c10::TensorImpl>> given_;  ///< its parameters when it was prepared
  std::shared_ptr<const Session> session_;
  LaunchEnvironment environment_;
  std::unique_ptr<ScaledGradients> scaled_;
  std::unique_ptr<ShardedOptimizer> shards_;
  bool shards_have_gradients_ = false;
  bool skipped_ = false;
  std::shared_ptr<StepAhead> ahead_;  ///< the last step, as long as its verdict is still to come
};

}  // namespace hortator::step
