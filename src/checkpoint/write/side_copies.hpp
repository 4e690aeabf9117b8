#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Stream.h>

#include <optional>

namespace hortator::checkpoint {

/// Copies from a device into page-locked memory, on a stream of their own: after all that the device was given before
/// the first of them, and all under way at once. Tensors of one device.
class SideCopies {
 public:
  void copy(const at::Tensor& from, const at::Tensor& to);
  /// Returns when they are there: to be called before what they were made of is changed or freed.
  void wait() const;

 private:
  std::optional<c10::Stream> stream_;
};

}  // namespace hortator::checkpoint
