#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Event.h>

#include <optional>

namespace hortator::step {

/// Whether a step must be skipped, computed on the device. The optimizer's kernels read it there, and the host reads it
/// one step later. A small kernel writes the number to page-locked host memory, without a copy. On the CPU the number
/// is there at once. Reused for each step after the host has read it.
class LateVerdict {
 public:
  explicit LateVerdict(c10::Device device);
  ~LateVerdict();
  LateVerdict(const LateVerdict&) = delete;
  LateVerdict& operator=(const LateVerdict&) = delete;

  /// Queues a write of `not_finite` on the current stream: one number, 1 if gradients are not finite on some rank, else
  /// 0.
  void write(const at::Tensor& not_finite);
  /// Records the point in the current stream for which is_overflow() waits: after write(), or a replay of it.
  void expect();

  const at::Tensor& not_finite() const { return not_finite_; }  ///< on the device
  /// Waits for the number, but not for work that was queued after it.
  bool is_overflow() const;

 private:
  bool has_arrived() const;

  at::Tensor not_finite_;
  at::Tensor on_host_;      ///< page-locked
  at::Tensor device_view_;  ///< the same memory, as a tensor of the device
  std::optional<c10::Event> written_;
};

}  // namespace hortator::step
