#pragma once

#include <torch/optim/optimizer.h>

#include <hortator/export.hpp>
#include <memory>

namespace hortator {

namespace step {
class OptimizerCore;
}

/// A prepared optimizer. It borrows your optimizer, and steps it when gradients are synchronised.
class HORTATOR_API Optimizer {
 public:
  explicit Optimizer(std::shared_ptr<step::OptimizerCore> core) : core_(std::move(core)) {}

  /// One step. With Precision::fp16: unscales gradients if that was not done yet, and skips the step if some rank's
  /// gradients are not finite. @collective
  void step();
  /// For optimizers that evaluate the loss several times (LBFGS). `closure` clears the gradients, computes a loss,
  /// calls accelerator.backward() and returns the loss. The optimizer gets the mean over all ranks, so that all ranks
  /// decide alike. Returns the first loss. Throws with Precision::fp16's scaler, ZeRO, gradient accumulation, and
  /// whenever one closure is less than one update. @collective
  at::Tensor step(const torch::optim::Optimizer::LossClosure& closure);
  /// Whether the last step was skipped; with GradScalerOptions::late_verdict, the step before the last.
  bool step_was_skipped() const;
  /// For an optimizer that trains at other weights than those to evaluate (ScheduleFreeAdamW): train() puts the weights
  /// to train into the parameters, eval() those to evaluate and to keep. Throws for other optimizers. @collective
  void train();
  void eval();  ///< @collective
  void zero_grad(bool set_to_none = true);

  torch::optim::Optimizer& unwrap() const;
  torch::optim::Optimizer* operator->() const { return &unwrap(); }
  step::OptimizerCore& core() const { return *core_; }

 private:
  std::shared_ptr<step::OptimizerCore> core_;
};

}  // namespace hortator
