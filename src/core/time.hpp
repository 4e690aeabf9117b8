#pragma once

#include <chrono>
#include <ctime>
#include <string>

namespace hortator::core {

/// Seconds since 1970, for files and for other machines.
inline double unix_time(std::chrono::system_clock::time_point time = std::chrono::system_clock::now()) {
  return std::chrono::duration<double>(time.time_since_epoch()).count();
}

/// The time in UTC as strftime writes it; by default as in records: "2026-11-25T03:28:09Z".
std::string utc(std::time_t time = std::time(nullptr), const char* format = "%Y-%m-%dT%H:%M:%SZ");

/// Adds the seconds of its lifetime to a sum.
class Stopwatch {
 public:
  explicit Stopwatch(double& seconds) : seconds_(seconds) {}
  ~Stopwatch() { seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count(); }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

 private:
  double& seconds_;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

}  // namespace hortator::core
