#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <hortator/grad_scaler.hpp>
#include <hortator/state_dict.hpp>

#include "comm/communicator.hpp"
#include "train/uneven_inputs.hpp"

namespace hortator::train {

/// The scale of the loss, the same on all ranks, and the verdict over a step, which they make together. The scale is a
/// number of the host: whether a step is skipped has to be known there anyway, once a step, and the scale follows.
class GradScaler {
 public:
  /// Verdicts travel by `communicator`, as tensors on `device`.
  GradScaler(const GradScalerOptions& options, comm::Communicator& communicator, c10::Device device);

  const LossScale& now() const { return now_; }
  at::Tensor scaled(const at::Tensor& loss) const;

  /// `not_finite` is one number, above zero where this rank's gradients are not all finite. True if some rank's are
  /// not; then the step must be skipped. The scale becomes that of the next step. @collective
  bool overflowed(const at::Tensor& not_finite);

  /// From now on verdicts are announced to ranks without batches; null: no more.
  void announce_by(const UnevenInputs* uneven) { uneven_ = uneven; }
  /// On a rank without batches: takes part in the verdict of the others. @collective
  void follow();

  StateDict state() const;
  void load(const StateDict& state);

 private:
  bool judge(const at::Tensor& not_finite);
  void warn_of_no_end();

  GradScalerOptions options_;
  comm::Communicator& communicator_;
  c10::Device device_;
  LossScale now_;
  std::int64_t steps_ = 0;
  bool warned_ = false;
  const UnevenInputs* uneven_ = nullptr;
};

}  // namespace hortator::train
