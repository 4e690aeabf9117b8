#pragma once

#include <torch/optim/optimizer.h>

#include <functional>
#include <memory>
#include <vector>

#include "train/fused_step.hpp"
#include "train/optimizer_parameters.hpp"
#include "train/scaled_gradients.hpp"
#include "train/session.hpp"

namespace hortator::train {

/// What stands behind a prepared optimizer's handle.
class OptimizerCore {
 public:
  /// What the rest of the training has to know of, or to say to, an optimizer.
  struct Surroundings {
    std::function<bool()> gradients_synchronised;  ///< in this micro-step
    std::function<void()> synchronise;  ///< finishes gradients that are still under way (plain loss.backward())
    std::function<void(const std::vector<at::Tensor>&)> cleared;  ///< these parameters' gradients are gone
    StepKernel kernel = StepKernel::fused;
  };

  /// `optimizer` is borrowed.
  OptimizerCore(torch::optim::Optimizer& optimizer, std::shared_ptr<const Session> session, Surroundings surroundings)
      : optimizer_(&optimizer), session_(std::move(session)), surroundings_(std::move(surroundings)) {}
  /// Its gradients come from losses that `scaler` has scaled.
  void scale_by(GradScaler& scaler) { scaled_ = std::make_unique<ScaledGradients>(*optimizer_, scaler); }
  /// Null without a scaler.
  ScaledGradients* scaled() const { return scaled_.get(); }

  torch::optim::Optimizer& optimizer() const {
    check_alive();
    return *optimizer_;
  }
  bool wraps(const torch::optim::Optimizer& optimizer) const { return optimizer_ == &optimizer; }
  /// Does nothing in a micro-step whose gradients are not synchronised, like zero_grad.
  void step();
  void zero_grad(bool set_to_none);
  std::vector<at::Tensor> parameters() const { return parameters_of(*optimizer_); }
  /// Was the last step left out, because some gradient had overflowed?
  bool step_was_skipped() const { return skipped_; }
  void check_alive() const { session_->check_alive("optimizer"); }

 private:
  torch::optim::Optimizer* optimizer_;
  std::shared_ptr<const Session> session_;
  Surroundings surroundings_;
  std::unique_ptr<ScaledGradients> scaled_;
  bool skipped_ = false;
};

}  // namespace hortator::train
