#pragma once

#include <torch/optim/optimizer.h>

#include <hortator/export.hpp>
#include <memory>

namespace hortator {

namespace step {
class OptimizerCore;
}

/// A prepared optimizer: steps on synchronised gradients. The user's own object is borrowed and does the arithmetic.
class HORTATOR_API Optimizer {
 public:
  explicit Optimizer(std::shared_ptr<step::OptimizerCore> core) : core_(std::move(core)) {}

  /// With Precision::fp16: unscales the gradients if that was not done yet, and skips the step where some rank's are
  /// not finite. @collective
  void step();
  /// For optimizers that ask for the loss again (LBFGS): `closure` clears the gradients, computes a loss, calls
  /// accelerator.backward() and returns the loss. The optimizer sees its mean over all ranks, so that all decide alike;
  /// returns the first one. Throws with Precision::fp16's scaler, ZeRO, gradient accumulation and what else makes one
  /// closure less than one update. @collective
  at::Tensor step(const torch::optim::Optimizer::LossClosure& closure);
  /// Whether the last step was skipped. Stays so until the next. With GradScalerOptions::late_verdict the step before
  /// the last.
  bool step_was_skipped() const;
  void zero_grad(bool set_to_none = true);

  torch::optim::Optimizer& unwrap() const;
  torch::optim::Optimizer* operator->() const { return &unwrap(); }
  step::OptimizerCore& core() const { return *core_; }

 private:
  std::shared_ptr<step::OptimizerCore> core_;
};

}  // namespace hortator
