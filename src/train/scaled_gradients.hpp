#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <vector>

#include "train/grad_scaler.hpp"
#include "train/tensor_set.hpp"

namespace hortator::train {

/// The gradients of one optimizer, and how many times too large they are. Each optimizer has its own: one that has not
/// stepped yet is unscaled by the scale that its loss had, whatever the others' steps have made of the scale since.
class ScaledGradients {
 public:
  /// `holders` gives the tensors that have the gradients.
  ScaledGradients(std::function<std::vector<at::Tensor>()> holders, GradScaler& scaler)
      : holders_(std::move(holders)), scaler_(scaler) {}

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

  std::function<std::vector<at::Tensor>()> holders_;
  GradScaler& scaler_;
  float factor_ = 1;                    ///< by which they are too large
  bool checked_ = false;                ///< since the last backward
  std::vector<at::Tensor> not_finite_;  ///< since the last step: one number a device, above zero where some are not
};

}  // namespace hortator::train
