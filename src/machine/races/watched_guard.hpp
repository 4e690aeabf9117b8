#pragma once

#include <c10/core/impl/DeviceGuardImplInterface.h>

namespace hortator::machine {

/// A guard that does what `guard` does, and tells watch_state() of streams, events and waits. It is never destroyed:
/// events keep a pointer to the guard that made them.
const c10::impl::DeviceGuardImplInterface* watched_guard(const c10::impl::DeviceGuardImplInterface& guard);

}  // namespace hortator::machine
