#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Event.h>
#include <c10/core/Stream.h>

#include <memory>
#include <optional>

namespace hortator::machine {

/// Copies between page-locked host memory and a device on a separate stream. Each copy comes after the earlier work of
/// the current stream and overlaps with later work. The host never waits. If the device is the CPU, copies are
/// immediate.
class CopyStream {
 public:
  /// The end of a copy; null: already done.
  using Done = std::shared_ptr<const c10::Event>;

  explicit CopyStream(c10::Device device);

  Done copy(const at::Tensor& from, const at::Tensor& to) const;
  /// Makes later work of the current stream wait for the copy.
  void hold_current(const Done& copy) const;
  /// Waits until all copies are done. Call it before host memory that they use is released.
  void wait() const;
  c10::Device device() const { return device_; }

 private:
  c10::Stream current() const;

  c10::Device device_;
  std::optional<c10::Stream> stream_;  ///< empty on the CPU
};

}  // namespace hortator::machine
