#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <string_view>

namespace hortator::step {

/// Warns once, with the number of the backward pass, if a loss is not a finite number. A loss on the CPU is checked at
/// once. A loss on a device is written to page-locked memory of the host by one small kernel, and checked in a later
/// pass, when it has arrived; nothing waits for the device. If the device is more than `max_late` passes behind, some
/// losses are not checked.
class LossCheck {
 public:
  using Warn = std::function<void(std::string_view)>;
  static constexpr std::int64_t max_late = 256;

  explicit LossCheck(Warn warn = {});  ///< by default writes a warning to the log
  ~LossCheck();
  LossCheck(const LossCheck&) = delete;
  LossCheck& operator=(const LossCheck&) = delete;

  /// Checks the loss of one more backward pass.
  void check(const at::Tensor& loss);

 private:
  void write_to_host(const at::Tensor& loss);
  void check_arrived();
  void warn(std::int64_t pass);

  Warn warn_;
  std::int64_t passes_ = 0;
  bool has_warned_ = false;
  std::int64_t checked_ = 0;  ///< the last pass whose loss was checked
  at::Tensor losses_;         ///< on the host, of the latest max_late passes, a ring buffer
  at::Tensor device_view_;    ///< the same memory, as a tensor of the device
};

}  // namespace hortator::step
