#pragma once

#include <torch/optim/optimizer.h>

#include <vector>

#include "train/grad_scaler.hpp"
#include "train/tensor_set.hpp"

namespace hortator::train {

/// The gradients of one optimizer, and how many times too large they are. Each optimizer has its own: one that has not
/// stepped yet is unscaled by the scale that its loss had, whatever the others' steps have made of the scale since.
class ScaledGradients {
 public:
  /// `optimizer` is borrowed.
  ScaledGradients(torch::optim::Optimizer& optimizer, GradScaler& scaler) : optimizer_(&optimizer), scaler_(scaler) {}

  /// A backward of a scaled loss is about to add to them: what is there already becomes as large.
  void expect_scaled();
  /// Divides by the scale, once, and notes whether they are finite. Nothing waits for the device. Gradients of losses
  /// that were not scaled (plain loss.backward() alone) are taken as they are.
  void unscale();
  /// Unscales what is not, and ends the step: false if it must be skipped. @collective
  bool may_step();

  bool hold_any_of(const TensorSet& wanted) const;

 private:
  void multiply(float by);
  at::Tensor& not_finite_on(c10::Device device);

  torch::optim::Optimizer* optimizer_;
  GradScaler& scaler_;
  float factor_ = 1;                    ///< by which they are too large
  bool checked_ = false;                ///< since the last backward
  std::vector<at::Tensor> not_finite_;  ///< since the last step: one number a device, above zero where some are not
};

}  // namespace hortator::train
