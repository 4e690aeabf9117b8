#pragma once

#include <chrono>

namespace hortator::core {

/// Seconds since 1970: what files and other machines understand.
inline double unix_time(std::chrono::system_clock::time_point time = std::chrono::system_clock::now()) {
  return std::chrono::duration<double>(time.time_since_epoch()).count();
}

}  // namespace hortator::core
