#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <string_view>

namespace hortator::step {

/// Warns once, with the number of the backward pass, when a loss is not a finite number. A loss on the CPU is looked at
/// at once. One on a device leaves itself in memory of the host that the device can write: one small kernel, no copy,
/// and nothing ever waits for the device. It is looked at in the passes after it, once it is there; a device that is
/// more than `max_late` passes behind leaves some out.
class LossCheck {
 public:
  using Warn = std::function<void(std::string_view)>;
  static constexpr std::int64_t max_late = 256;

  explicit LossCheck(Warn warn = {});  ///< by default a warning in the log
  ~LossCheck();
  LossCheck(const LossCheck&) = delete;
  LossCheck& operator=(const LossCheck&) = delete;

  void see(const at::Tensor& loss);

 private:
  void leave_on_host(const at::Tensor& loss);
  void look_at_arrived();
  void warn(std::int64_t pass);

  Warn warn_;
  std::int64_t passes_ = 0;
  bool has_warned_ = false;
  std::int64_t looked_at_ = 0;  ///< passes
  at::Tensor losses_;           ///< on the host, of the latest passes: round and round
  at::Tensor device_view_;      ///< the same memory, as the device sees it
};

}  // namespace hortator::step
