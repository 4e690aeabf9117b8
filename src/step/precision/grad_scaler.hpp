#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <deque>
#include <hortator/training/grad_scaler.hpp>
#include <hortator/training/state_dict.hpp>
#include <memory>

#include "comm/communicator.hpp"
#include "parallel/uneven/uneven_inputs.hpp"
#include "step/precision/late_verdict.hpp"

namespace hortator::step {

/// The scale of the loss, the same on all ranks, and the verdict over a step, which they make together. The scale is a
/// number of the host: whether a step is skipped has to be known there anyway, once a step, and the scale follows.
///
/// With late verdicts the device has the scale and makes the next one of it by itself; the host does the same sums as
/// it hears of the verdicts, in their order.
class GradScaler {
 public:
  /// Verdicts travel by `communicator`, as tensors on `device`.
  GradScaler(const GradScalerOptions& options, comm::Communicator& communicator, c10::Device device);

  /// With late verdicts: as far as the host has heard of them.
  const LossScale& now() const { return now_; }
  at::Tensor scaled(const at::Tensor& loss) const;

  c10::Device device() const { return device_; }

  bool is_late() const { return options_.late_verdict; }
  /// With late verdicts: the scale, one number, which changes in its place.
  const at::Tensor& scale_on_device() const { return scale_; }
  /// How many verdicts the device was asked for: the scale has not changed while this has not.
  std::int64_t verdicts() const { return verdicts_; }

  /// `not_finite` is one number, above zero where this rank's gradients are not all finite. True if some rank's are
  /// not; then the step must be skipped. The scale becomes that of the next step. @collective
  bool overflowed(const at::Tensor& not_finite);

  /// The same without waiting for the device: `verdict` gets the answer, and so does the scale there. @collective
  void overflowed_later(const at::Tensor& not_finite, LateVerdict& verdict);
  /// What overflowed_later gave the device, or a replay of it, will tell the host something.
  void expect(const std::shared_ptr<LateVerdict>& verdict);
  /// Waits for a verdict that was expected, and for those before it. The scale of the host follows.
  bool apply_verdict(std::shared_ptr<const LateVerdict> verdict);
  /// The same for all that are expected.
  void apply_verdicts();
  /// Those that are expected are of no interest any more.
  void forget_expected() { expected_.clear(); }

  /// From now on verdicts are announced to ranks without batches; null: no more.
  void announce_by(const parallel::UnevenInputs* uneven) { uneven_ = uneven; }
  /// On a rank without batches: takes part in the verdict of the others. @collective
  void follow();

  StateDict state() const;
  void load(const StateDict& state);

 private:
  bool judge(const at::Tensor& not_finite);
  void judge_later(const at::Tensor& not_finite, LateVerdict& verdict);
  void agree_on(const at::Tensor& not_finite);
  void announce() const;
  void note(bool overflowed);
  void put_on_device();
  void warn_of_no_end();

  GradScalerOptions options_;
  comm::Communicator& communicator_;
  c10::Device device_;
  LossScale now_;
  std::int64_t steps_ = 0;
  bool warned_ = false;
  const parallel::UnevenInputs* uneven_ = nullptr;

  // Of late verdicts.
  at::Tensor scale_;
  at::Tensor growth_tracker_;
  std::int64_t verdicts_ = 0;
  std::deque<std::shared_ptr<const LateVerdict>> expected_;
  std::shared_ptr<LateVerdict> followed_;  ///< of the other ranks
};

}  // namespace hortator::step
