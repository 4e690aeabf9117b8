#include "simulation/border/stream_order.hpp"

#include <c10/core/impl/VirtualGuardImpl.h>

#include "machine/device/stream.hpp"

namespace hortator::simulation {
namespace {

c10::Stream current_stream(c10::Device device) { return c10::impl::VirtualGuardImpl(device.type()).getStream(device); }

}  // namespace

StreamOrder::StreamOrder(const std::vector<c10::Stream>& streams) : streams_(streams) {
  for (const auto& stream : streams_) machine::order(stream, current_stream(stream.device()));
}

// A device that has failed is reported by the call.
StreamOrder::~StreamOrder() {
  try {
    for (const auto& stream : streams_) machine::order(current_stream(stream.device()), stream);
  } catch (const c10::Error&) {
  }
}

}  // namespace hortator::simulation
