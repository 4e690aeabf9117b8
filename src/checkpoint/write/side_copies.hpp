#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Stream.h>

#include <optional>

namespace hortator::checkpoint {

/// Copies tensors of one device to page-locked memory on a separate stream. The copies begin after all work that was
/// queued on the current stream before the first of them, and do not wait for each other.
class SideCopies {
 public:
  void copy(const at::Tensor& from, const at::Tensor& to);
  /// Returns when all copies are complete. Call it before the source tensors are changed or freed.
  void wait() const;

 private:
  std::optional<c10::Stream> stream_;
};

}  // namespace hortator::checkpoint
