#pragma once

#include <atomic>
#include <functional>
#include <limits>
#include <string>
#include <vector>

/// A stand-in for the room `device` in host memory: one device a rank, with one stream beside the calling thread. A
/// thread of its own does the stream's work, later, in order; the calling thread is the program's current stream. What
/// is handed from stream to stream is written down, in one list with what the mock NCCL was asked to do.
namespace hortator::test {

/// What was done so far, in order. Callable from any thread, as are the other two.
std::vector<std::string> trace();
void add_to_trace(const std::string& line);
void clear_trace();

struct HostDevice {
  std::string uuid;
  std::string name = "Host";
  int openable = 0;                    ///< devices of the node that this rank may open; 0: unknown
  std::atomic<bool> is_stuck = false;  ///< its stream never comes to an end
  std::atomic<long> marks = 0;         ///< that were taken so far
  std::atomic<long> last_reached =
      std::numeric_limits<long>::max();     ///< of the marks, counted from 1; the stream stands behind it
  std::atomic<int> last_chosen = -1;        ///< by any thread, as its device
  std::atomic<int> page_locked_blocks = 0;  ///< that were taken so far

  // Its memory, as far as NCCL takes it.
  std::atomic<std::size_t> free_bytes = std::numeric_limits<std::size_t>::max() / 2;
  std::atomic<std::size_t> cached_bytes = 0;  ///< that LibTorch would give back
  std::atomic<int> cache_releases = 0;
  std::atomic<int> memory_reports = 0;  ///< of memory that has run out
};
HostDevice& host_device();

/// The device of this thread: 0 until it chooses one, as with CUDA.
int chosen_device();

/// Gives the stream work: it is called until it returns true.
void submit(std::function<bool()> work);
/// Whether the stream has done all its work.
bool is_idle();
/// Waits until it has, for some seconds at most: then tensors may be freed on which it has worked.
void await_idle();

/// A device whose stream stands still from now on.
struct StandStill {
  StandStill() { host_device().last_reached = host_device().marks.load(); }
  ~StandStill() {
    resume();
    await_idle();
  }
  StandStill(const StandStill&) = delete;
  StandStill& operator=(const StandStill&) = delete;
  static void go_on_by(long marks) { host_device().last_reached += marks; }
  static void resume() { host_device().last_reached = std::numeric_limits<long>::max(); }
};

}  // namespace hortator::test
