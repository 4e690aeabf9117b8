#pragma once

#include <c10/core/Event.h>
#include <c10/core/Stream.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <hortator/detail/batch_source.hpp>

namespace hortator::data {

/// Copies batches from page-locked memory to a device on a separate stream, while the device works on earlier batches.
/// Does not wait for the device. Safe for several threads.
class DeviceUploader {
 public:
  explicit DeviceUploader(c10::Device device);

  /// Replaces the batch's tensors by copies on the device. They must not be used before the returned event.
  c10::Event upload(void* batch, const BatchSource& source) const;
  /// Lets the current stream use the batch after `arrival`. The batch's memory is not reused before the work on the
  /// current stream is done.
  void hand_over(void* batch, const BatchSource& source, const c10::Event& arrival) const;

 private:
  c10::impl::VirtualGuardImpl device_;
  c10::Stream stream_;
};

}  // namespace hortator::data
