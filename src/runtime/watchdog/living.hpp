#pragma once

namespace hortator::runtime {

class Watchdog;

/// Registers a watchdog whose world exists. If the process exits before it is removed, Watchdog::leave_early is called.
void add_living(Watchdog* watchdog);
/// Removes it. False when leave_early has been called.
bool remove_living(Watchdog* watchdog);
/// Calls Watchdog::report_killed_peer of all.
void report_killed_peers(bool launcher_reports);

}  // namespace hortator::runtime
