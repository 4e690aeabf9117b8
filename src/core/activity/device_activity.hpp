#pragma once

#include <optional>

#include "core/activity/activity.hpp"

/// Records what the process's device is doing: it continues with operations after the threads have left them.
namespace hortator::activity {

/// The oldest operation on the device that has not ended. Its turn comes when all earlier work of the device is done;
/// from then on it waits for its peers or runs.
struct OnDevice {
  Operation operation = {};
  bool is_its_turn = false;
};

/// Published by the single thread that polls the device.
void publish_device(const Operation& operation, bool is_its_turn);
void publish_device_idle();

/// Nothing if the device is idle or there is none.
std::optional<OnDevice> on_device();
/// view(), with the device as an additional last thread: inside an operation from its turn on.
View view_with_device();

/// The outermost collective of this thread; none outside of collectives.
Operation current();

}  // namespace hortator::activity
