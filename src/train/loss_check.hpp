#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Event.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>

namespace hortator::train {

/// Warns once, with the number of the backward pass, when a loss is not a finite number. A loss on the CPU is looked at
/// at once. One on a device is looked at there, and what was seen is copied to the host behind it: the warning comes
/// with the first pass that finds the copy arrived, names the pass that it was, and nothing ever waits for the device.
class LossCheck {
 public:
  using Warn = std::function<void(std::string_view)>;

  explicit LossCheck(Warn warn = {});  ///< by default a warning in the log

  void see(const at::Tensor& loss);

 private:
  void see_on_device(const at::Tensor& loss);
  void warn(std::int64_t pass);

  Warn warn_;
  std::int64_t passes_ = 0;
  bool has_warned_ = false;
  at::Tensor first_on_device_;  ///< the first pass whose loss was not finite; 0: none so far
  at::Tensor first_on_host_;    ///< as far as it has come
  std::optional<c10::Event> copied_;
};

}  // namespace hortator::train
