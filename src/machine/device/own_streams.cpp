#include <c10/core/impl/VirtualGuardImpl.h>

#include <hortator/error.hpp>

#include "core/text/text.hpp"
#include "machine/device/device.hpp"
#include "machine/device/stream.hpp"

namespace hortator::machine {

// For kinds whose streams only LibTorch's generic classes know: these do not take over a vendor's stream.
c10::Stream stream_of_native(void* native, c10::Device device) {
  if (native == nullptr) return c10::impl::VirtualGuardImpl(device.type()).getDefaultStream(device);
  const auto title = accelerator_kind()->title;
  throw UsageError({.what = text::concat("An array has a stream of its own, on a device of ", title),
                    .why = text::concat("LibTorch's streams cannot be made of those of ", title, " yet"),
                    .hint = "let the default stream wait for it, and leave the stream out"});
}

void* Stream::native() const {
  return c10::impl::VirtualGuardImpl(stream_.device_type()).getStreamNativeHandle(stream_);
}

}  // namespace hortator::machine
