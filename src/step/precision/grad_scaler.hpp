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

/// The loss scale, equal on all ranks, and the verdict of each step (skip it or not), which all ranks reach together.
/// The scale is a number on the host, which must know the verdict of each step anyway.
///
/// With late verdicts the device holds the scale and updates it. The host repeats the same updates when it reads the
/// verdicts, in their order.
class GradScaler {
 public:
  /// Reduces verdicts over `communicator`, as tensors on `device`.
  GradScaler(const GradScalerOptions& options, comm::Communicator& communicator, c10::Device device);

  /// The scale. With late verdicts: after the verdicts that the host has read.
  const LossScale& now() const { return now_; }
  /// The loss times the scale, in fp32 or fp64.
  at::Tensor scaled(const at::Tensor& loss) const;

  c10::Device device() const { return device_; }

  bool is_late() const { return options_.late_verdict; }
  /// With late verdicts: the scale, one number, which is updated in place.
  const at::Tensor& scale_on_device() const { return scale_; }
  /// The number of verdicts that the device was asked for. The scale is unchanged while this number is.
  std::int64_t verdicts() const { return verdicts_; }

  /// `not_finite` is one number, above zero if some of this rank's gradients are not finite. Returns true if that holds
  /// on some rank: the step must be skipped. Updates the scale for the next step. @collective
  bool overflowed(const at::Tensor& not_finite);

  /// The same without waiting for the device: writes the answer to `verdict`, and updates the scale on the device.
  /// @collective
  void overflowed_later(const at::Tensor& not_finite, LateVerdict& verdict);
  /// Registers a pending verdict of overflowed_later(), or of a replay of it. The host reads it in apply_verdict().
  void expect(const std::shared_ptr<LateVerdict>& verdict);
  /// Waits for a pending verdict and those before it, and updates the host's scale. Returns whether it is an overflow.
  bool apply_verdict(std::shared_ptr<const LateVerdict> verdict);
  /// The same for all pending verdicts.
  void apply_verdicts();
  /// Drops all pending verdicts.
  void forget_expected() { expected_.clear(); }

  /// From now on verdicts and scale are those of these ranks (LocalSGD); null: of all ranks again.
  void judge_among(comm::Communicator* ranks) { among_ = ranks; }
  /// Gradients were stepped with while they were still scaled.
  void warn_of_scaled_step();
  /// Announces further verdicts to ranks without batches. Null stops that.
  void announce_by(const parallel::UnevenInputs* uneven) { uneven_ = uneven; }
  /// On a rank without batches: takes part in the other ranks' verdict. @collective
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
  void warn_if_endless();

  GradScalerOptions options_;
  comm::Communicator& communicator_;
  c10::Device device_;
  LossScale now_;
  std::int64_t steps_ = 0;
  bool warned_ = false;
  bool warned_of_scaled_step_ = false;
  comm::Communicator* among_ = nullptr;
  const parallel::UnevenInputs* uneven_ = nullptr;

  // For late verdicts.
  at::Tensor scale_;
  at::Tensor growth_tracker_;
  std::int64_t verdicts_ = 0;
  std::deque<std::shared_ptr<const LateVerdict>> expected_;
  std::shared_ptr<LateVerdict> followed_;  ///< of follow()
};

}  // namespace hortator::step
