#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <vector>

#include "step/precision/grad_scaler.hpp"
#include "step/tensor_set.hpp"

namespace hortator::step {

/// The gradients of one optimizer, and the factor by which they are scaled. Each optimizer has its own factor: it
/// unscales by the scale that its loss had, even if steps of other optimizers have changed the scale since.
class ScaledGradients {
 public:
  /// `holders` returns the tensors whose grad() is set.
  ScaledGradients(std::function<std::vector<at::Tensor>()> holders, GradScaler& scaler)
      : holders_(std::move(holders)), scaler_(scaler) {}

  /// Call before the backward pass of a scaled loss. Scales existing gradients to the present scale.
  void expect_scaled();
  /// Call it before the gradients are cleared. Warns, once, if the parameters have changed while these were scaled: the
  /// user's own optimizer has stepped.
  void warn_if_stepped();
  /// The gradients were cleared: there is nothing that is scaled.
  void note_cleared() {
    now_.factor = 1;
    now_.factor_on_device.reset();
  }
  /// Divides gradients by the scale, once, and records whether they are finite. Does not wait for the device. Gradients
  /// of unscaled losses (plain loss.backward() only) stay as they are.
  void unscale();
  /// Unscales if needed, and ends the step. Returns false if the step must be skipped. @collective
  bool may_step();

  bool is_late() const { return scaler_.is_late(); }
  /// The same with late verdicts: only the device knows yet whether the step must be skipped. Pass the verdict to
  /// GradScaler::expect() and GradScaler::apply_verdict() before the next step. @collective
  const std::shared_ptr<LateVerdict>& end_step();
  GradScaler& scaler() const { return scaler_; }

  bool hold_any_of(const TensorSet& wanted) const;

  /// The state between steps, to be restored when a recorded step is discarded.
  struct ScaleState {
    float factor = 1;                  ///< of the gradients
    at::Tensor factor_on_device = {};  ///< used instead with late verdicts; undefined means 1
    std::int64_t verdicts = 0;         ///< scaler_.verdicts() when that factor was set
    bool checked = false;              ///< since the last backward pass
    std::vector<at::Tensor> not_finite =
        {};  ///< since the last step: one number for each device, above zero if some gradients are not finite
  };
  const ScaleState& state() const { return now_; }
  void restore(const ScaleState& before) { now_ = before; }

 private:
  void expect_scaled_on_device();
  void multiply(const std::function<void(at::TensorList, c10::Device)>& by) const;
  at::Tensor inverse_factor(c10::Device device) const;
  at::Tensor& not_finite_on(c10::Device device);
  at::Tensor worst();

  std::function<std::vector<at::Tensor>()> holders_;
  GradScaler& scaler_;
  ScaleState now_;
  std::uint64_t changes_ = 0;             ///< of the tensors with gradients, when these were last scaled
  std::shared_ptr<LateVerdict> verdict_;  ///< null until the first late verdict
};

}  // namespace hortator::step
