#pragma once

#include <torch/optim/optimizer.h>

#include <functional>
#include <memory>

#include "train/fused_step.hpp"
#include "train/session.hpp"

namespace hortator::train {

/// What stands behind a prepared optimizer's handle.
class OptimizerCore {
 public:
  /// `optimizer` is borrowed. `synchronise` finishes gradients that are still under way (plain loss.backward()).
  OptimizerCore(torch::optim::Optimizer& optimizer, std::shared_ptr<const Session> session,
                std::function<void()> synchronise, StepKernel kernel)
      : optimizer_(&optimizer), session_(std::move(session)), synchronise_(std::move(synchronise)), kernel_(kernel) {}

  torch::optim::Optimizer& optimizer() const {
    check_alive();
    return *optimizer_;
  }
  bool wraps(const torch::optim::Optimizer& optimizer) const { return optimizer_ == &optimizer; }
  void step();
  void check_alive() const { session_->check_alive("optimizer"); }

 private:
  torch::optim::Optimizer* optimizer_;
  std::shared_ptr<const Session> session_;
  std::function<void()> synchronise_;
  StepKernel kernel_;
};

}  // namespace hortator::train
