#pragma once

#include <optional>

#include "core/activity/activity.hpp"

/// What the process's device is doing, beside what its threads do: devices go on with operations that no thread is in
/// any more.
namespace hortator::activity {

/// The oldest operation that the device was given and has not ended. Its turn comes when all that the device was given
/// before is done; from then on it waits for its peers, or works.
struct OnDevice {
  Operation operation = {};
  bool is_its_turn = false;
};

/// Told by the one thread that looks at the device.
void tell_device(const Operation& operation, bool is_its_turn);
void tell_device_idle();

/// Nothing: the device has ended all, or there is none.
std::optional<OnDevice> on_device();
/// view(), and behind its threads the device: inside an operation from its turn on.
View view_with_device();

/// What this thread is in, the outermost; none outside of collectives.
Operation current();

}  // namespace hortator::activity
