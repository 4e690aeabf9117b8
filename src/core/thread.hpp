#pragma once

#include <functional>
#include <thread>

namespace hortator::core {

/// Starts a thread that handles no signals, so that they interrupt only the program's own threads.
std::thread start_without_signals(const std::function<void()>& work);

}  // namespace hortator::core
