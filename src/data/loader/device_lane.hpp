#pragma once

#include <c10/core/Event.h>
#include <c10/core/Stream.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <hortator/detail/batch_source.hpp>

namespace hortator::data {

/// Brings batches to a device on a stream of its own, from page-locked memory, while the device works on the ones
/// before. Nothing here waits for the device. May be used by several threads at once.
class DeviceLane {
 public:
  explicit DeviceLane(c10::Device device);

  /// The batch's tensors become those on the device, which are good to use after the arrival, and not before.
  c10::Event bring(void* batch, const BatchSource& source) const;
  /// From now on the batch may be used by what the current stream is given. Its memory is used again only when that is
  /// done, too.
  void hand_over(void* batch, const BatchSource& source, const c10::Event& arrival) const;

 private:
  c10::impl::VirtualGuardImpl device_;
  c10::Stream stream_;
};

}  // namespace hortator::data
