#pragma once

#include <c10/core/Device.h>

#include <functional>
#include <memory>

namespace hortator::machine {

/// Recorded work of a device, which can be replayed as a whole.
class Graph {
 public:
  explicit Graph(c10::Device device);
  ~Graph();
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  /// Runs `work` on the stream for recording, after earlier and before later work of the current stream. Call it before
  /// record(): what LibTorch sets up on first use must exist by then.
  void rehearse(const std::function<void()>& work) const;
  /// Records the work that `work` submits from this thread and from backward threads; the device does not execute it.
  /// Call it once. Waits for the device. When `work` throws or does something that cannot be recorded, the error is
  /// passed on and nothing is recorded.
  void record(const std::function<void()>& work);
  /// Submits the recorded work to the current stream.
  void replay();
  /// Memory that was allocated for the recording is reused only behind the earlier work of the current stream. Call it
  /// after the last work that uses results of a replay.
  void protect_memory() const;

 private:
  struct Recorded;
  std::unique_ptr<Recorded> recorded_;
};

}  // namespace hortator::machine
