#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <vector>

#include "step/precision/grad_scaler.hpp"
#include "step/tensor_set.hpp"

namespace hortator::step {

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

  bool is_late() const { return scaler_.is_late(); }
  /// With late verdicts: the same, but the device alone knows by now whether the step must be skipped. The verdict has
  /// to be expected (GradScaler::expect) and heard before the next step. @collective
  const std::shared_ptr<LateVerdict>& end_step();
  GradScaler& scaler() const { return scaler_; }

  bool hold_any_of(const TensorSet& wanted) const;

  /// What is remembered between steps: to be put back when steps that were only recorded come to nothing.
  struct Standing {
    float factor = 1;                  ///< by which they are too large
    at::Tensor factor_on_device = {};  ///< in its place where verdicts are late; undefined: 1
    std::int64_t verdicts = 0;         ///< of the scaler when that was the scale
    bool checked = false;              ///< since the last backward
    std::vector<at::Tensor> not_finite =
        {};  ///< since the last step: one number a device, above zero where some are not
  };
  const Standing& standing() const { return now_; }
  void put_back(const Standing& before) { now_ = before; }

 private:
  void expect_scaled_on_device();
  void multiply(const std::function<void(at::TensorList, c10::Device)>& by) const;
  at::Tensor inverse_factor(c10::Device device) const;
  at::Tensor& not_finite_on(c10::Device device);
  at::Tensor worst();

  std::function<std::vector<at::Tensor>()> holders_;
  GradScaler& scaler_;
  Standing now_;
  std::shared_ptr<LateVerdict> verdict_;  ///< null until the first that is late
};

}  // namespace hortator::step
