#pragma once

#include <chrono>

namespace hortator::core {

/// Seconds since 1970, for files and for other machines.
inline double unix_time(std::chrono::system_clock::time_point time = std::chrono::system_clock::now()) {
  return std::chrono::duration<double>(time.time_since_epoch()).count();
}

}  // namespace hortator::core
