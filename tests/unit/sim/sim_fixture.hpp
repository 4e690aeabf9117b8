#pragma once

#include <ATen/ATen.h>
#include <c10/core/Event.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <array>
#include <string>
#include <vector>

#include "support/catch.hpp"
#include "support/sim/sim.hpp"

namespace hortator::test {

inline constexpr std::array policies = {sim::Policy::eager, sim::Policy::late, sim::Policy::random};

inline c10::impl::VirtualGuardImpl sim_guard() { return c10::impl::VirtualGuardImpl(c10::kPrivateUse1); }
inline c10::Stream side_stream(int device = 0) {
  return sim_guard().getStreamFromGlobalPool(sim::device(device), false);
}
inline c10::Stream current_stream(int device = 0) { return sim_guard().getStream(sim::device(device)); }

/// Makes later work of `second` wait for the earlier work of `first`.
inline void order(const c10::Stream& first, const c10::Stream& second) {
  c10::Event event(c10::kPrivateUse1);
  event.record(first);
  event.block(second);
}

/// Waits for all devices, and forgets the findings so far.
inline void start_clean(sim::Policy policy, std::uint64_t seed = 1) {
  for (int device = 0; device < sim::devices; ++device)
    sim_guard().synchronizeDevice(static_cast<c10::DeviceIndex>(device));
  sim::set_policy(policy, seed);
  sim::take_findings();
}

}  // namespace hortator::test
