#include "machine/device/stream.hpp"

#include <c10/core/DeviceGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

namespace hortator::machine {
namespace {

// The guards: LibTorch's functions of events change the current device and set it back, which without an outer guard
// makes a context on the first device in threads that have not chosen theirs.
//
// An event may be destroyed before it is reached. The event of a device that has failed is left.
void destroy(const c10::Event* event, c10::Device device) noexcept {
  try {
    const c10::DeviceGuard guard(device);
    delete event;
  } catch (const c10::Error&) {
  }
}

std::shared_ptr<const c10::Event> event_in(const c10::Stream& stream) {
  const c10::DeviceGuard guard(stream.device());
  const std::shared_ptr<c10::Event> event(new c10::Event(stream.device_type()),
                                          [device = stream.device()](auto* old) { destroy(old, device); });
  event->record(stream);
  return event;
}

void hold(const c10::Stream& stream, const c10::Event& event) {
  const c10::DeviceGuard guard(stream.device());
  event.block(stream);
}

c10::Stream current_stream(c10::Device device) { return c10::impl::VirtualGuardImpl(device.type()).getStream(device); }

}  // namespace

Stream::Stream(c10::Device device)
    : stream_(c10::impl::VirtualGuardImpl(device.type()).getStreamFromGlobalPool(device, /*isHighPriority=*/true)) {}

void Stream::follow_current() const { hold(stream_, *event_in(current_stream(stream_.device()))); }

Event Stream::mark() const { return Event(event_in(stream_)); }

bool Event::is_reached() const { return event_->query(); }

void Event::hold_current_stream() const { hold(current_stream(event_->device()), *event_); }

void order(const c10::Stream& first, const c10::Stream& then) {
  if (first != then) hold(then, *event_in(first));
}

void wait_until_idle(c10::Device device) {
  const c10::DeviceGuard guard(device);
  c10::impl::VirtualGuardImpl(device.type()).synchronizeDevice(device.index());
}

}  // namespace hortator::machine
