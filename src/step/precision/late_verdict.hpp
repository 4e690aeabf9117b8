#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Event.h>

#include <optional>

namespace hortator::step {

/// Whether a step must be left out, as the device knows it: the step that is given to the device next reads it there,
/// and the host hears of it when it asks, which is a step later. The device leaves the number in memory of the host by
/// itself (one small kernel, no copy). One on the CPU is there at once. Used again for each step, once it was read.
class LateVerdict {
 public:
  explicit LateVerdict(c10::Device device);
  ~LateVerdict();
  LateVerdict(const LateVerdict&) = delete;
  LateVerdict& operator=(const LateVerdict&) = delete;

  /// The current stream leaves `not_finite` here: one number, 1 where gradients are not finite on some rank, else 0.
  void leave(const at::Tensor& not_finite);
  /// The host is to hear of what leave() gave the device, or a replay of it, by now.
  void expect();

  const at::Tensor& not_finite() const { return not_finite_; }  ///< on the device
  /// Waits for this number, and not for what the device was given after it.
  bool is_overflow() const;

 private:
  bool has_come() const;

  at::Tensor not_finite_;
  at::Tensor here_;         ///< on the host
  at::Tensor device_view_;  ///< the same memory, as the device sees it
  std::optional<c10::Event> left_;
};

}  // namespace hortator::step
