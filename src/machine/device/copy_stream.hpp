#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Event.h>
#include <c10/core/Stream.h>

#include <cstddef>
#include <memory>
#include <optional>

namespace hortator::machine {

/// Copies between page-locked memory of the host and a device, on a stream of their own: each after what the current
/// stream was given before it, so that they overlap with what it is given next. The host never waits. Where the device
/// is the CPU a copy is made at once.
class CopyStream {
 public:
  /// When a copy is done; null: it is.
  using Done = std::shared_ptr<const c10::Event>;

  explicit CopyStream(c10::Device device);

  Done copy(const at::Tensor& from, const at::Tensor& to) const;
  /// What the current stream is given from now on comes after the copy.
  void hold_current(const Done& copy) const;
  /// Bytes of the device's memory, which are somebody else's.
  at::Tensor view(std::byte* memory, std::size_t bytes) const;

 private:
  c10::Stream current() const;

  c10::Device device_;
  std::optional<c10::Stream> stream_;  ///< nothing on the CPU
};

}  // namespace hortator::machine
