#pragma once

namespace hortator::runtime {

class Watchdog;

/// The watchdogs whose worlds are still there. When the process exits before they have gone, each is told to leave
/// early: Watchdog::leave_early.
void add_living(Watchdog* watchdog);
/// False when it was told already.
bool remove_living(Watchdog* watchdog);

}  // namespace hortator::runtime
