#pragma once

#include <string>

namespace hortator::core {

/// Identifies this process among all processes of all machines: the machine's boot, the PID namespace, the number and
/// the start time. Empty if /proc does not have them.
std::string process_id();

/// Whether the process with this process_id() has ended. False if that is unknown from here: it runs or ran on another
/// machine or in another PID namespace.
bool has_ended(const std::string& process_id);

}  // namespace hortator::core
