#pragma once

#include <map>
#include <memory>
#include <string_view>
#include <vector>

#include "support/sim/streams.hpp"

namespace hortator::sim {

/// Work that was recorded from a stream, and from streams that joined it by events, instead of being run. Its memory
/// comes from a pool of its own, in which blocks are reused during the recording.
struct Recording {
  struct Recorded {
    Task task;
    std::vector<std::uint64_t> releases;  ///< of the blocks in use, at the time of recording
  };

  int stream = 0;
  int pool = 0;
  std::vector<Recorded> tasks = {};
  std::map<int, std::size_t> joined = {};  ///< streams, and the tasks up to their last one that is not awaited
  std::uint64_t drawn = 0;                 ///< random numbers
  const char* fault = nullptr;             ///< why it cannot be replayed

  Recording() = default;
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;
  ~Recording();
};

/// Begins to record the work of a stream; this thread must not wait for a device until end_recording().
std::unique_ptr<Recording> begin_recording(int stream);
/// Throws if something was done that cannot be recorded, or if a stream that joined has not been awaited.
void end_recording(Recording& recording);
void replay(const Recording& recording, int stream);

bool is_recording(int device);
/// Throws if this thread records, or if the event belongs to a recording; the recording is then not valid.
void check_may_wait(const char* what, const Recording* of_event);

// For streams.cpp, which holds the lock of the state.
void add_task(Recording& recording, int stream, Task task);
void join_recording(int stream, const Event& event);

}  // namespace hortator::sim
