#pragma once

#include <atomic>
#include <limits>
#include <string>
#include <vector>

/// A stand-in for the room `device` in host memory: one device a rank, whose streams do at once what they are given.
/// What is handed from stream to stream is written down, in one list with what the mock NCCL was asked to do.
namespace hortator::test {

/// What was done so far, in order. Callable from any thread, as are the other two.
std::vector<std::string> trace();
void add_to_trace(const std::string& line);
void clear_trace();

struct HostDevice {
  std::string uuid;
  std::string name = "Host";
  bool is_stuck = false;        ///< its streams never come to an end
  std::atomic<long> marks = 0;  ///< that were taken so far
  std::atomic<long> last_reached =
      std::numeric_limits<long>::max();     ///< of the marks, counted from 1; streams stand behind it
  std::atomic<int> last_chosen = -1;        ///< by any thread, as its device
  std::atomic<int> page_locked_blocks = 0;  ///< that were taken so far

  bool is_idle() const { return !is_stuck && last_reached >= marks; }
};
HostDevice& host_device();

/// A device whose streams stand still from now on.
struct StandStill {
  StandStill() { host_device().last_reached = host_device().marks.load(); }
  ~StandStill() { resume(); }
  StandStill(const StandStill&) = delete;
  StandStill& operator=(const StandStill&) = delete;
  static void go_on_by(long marks) { host_device().last_reached += marks; }
  static void resume() { host_device().last_reached = std::numeric_limits<long>::max(); }
};

}  // namespace hortator::test
