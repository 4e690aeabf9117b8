#pragma once

#include <functional>
#include <thread>

namespace hortator::core {

/// Starts a thread that handles no signals, so that they interrupt only the program's own threads. Debuggers and top
/// show its name; the system keeps 15 characters of it.
std::thread start_without_signals(const char* name, const std::function<void()>& work);

}  // namespace hortator::core
