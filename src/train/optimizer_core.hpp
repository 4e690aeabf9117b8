#pragma once

#include <torch/optim/optimizer.h>

#include <functional>
#include <memory>

#include "train/scaled_gradients.hpp"
#include "train/session.hpp"

namespace hortator::train {

/// What stands behind a prepared optimizer's handle.
class OptimizerCore {
 public:
  /// `optimizer` is borrowed. `synchronise` finishes gradients that are still under way (plain loss.backward()).
  OptimizerCore(torch::optim::Optimizer& optimizer, std::shared_ptr<const Session> session,
                std::function<void()> synchronise)
      : optimizer_(&optimizer), session_(std::move(session)), synchronise_(std::move(synchronise)) {}
  /// Its gradients come from losses that `scaler` has scaled.
  void scale_by(GradScaler& scaler) { scaled_ = std::make_unique<ScaledGradients>(*optimizer_, scaler); }
  /// Null without a scaler.
  ScaledGradients* scaled() const { return scaled_.get(); }

  torch::optim::Optimizer& optimizer() const {
    check_alive();
    return *optimizer_;
  }
  bool wraps(const torch::optim::Optimizer& optimizer) const { return optimizer_ == &optimizer; }
  void step();
  /// Was the last step left out, because some gradient had overflowed?
  bool step_was_skipped() const { return skipped_; }
  void check_alive() const { session_->check_alive("optimizer"); }

 private:
  torch::optim::Optimizer* optimizer_;
  std::shared_ptr<const Session> session_;
  std::function<void()> synchronise_;
  std::unique_ptr<ScaledGradients> scaled_;
  bool skipped_ = false;
};

}  // namespace hortator::train
