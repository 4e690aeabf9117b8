#pragma once

#include <functional>
#include <memory>

namespace hortator::machine {

/// Work that a device was given once, kept to be given to it again as a whole.
class Graph {
 public:
  explicit Graph(int device);
  ~Graph();
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  /// Does `work` on the stream that it will be recorded on, after all that the current stream was given and before all
  /// that it will be given. What LibTorch sets up on first use must exist before it is recorded.
  void rehearse(const std::function<void()>& work) const;
  /// Runs `work`, of which the device does nothing: what this thread, and backward's threads, give to the stream is
  /// kept. Once. Waits for the device. When `work` throws, or does what cannot be recorded, nothing is kept.
  void record(const std::function<void()>& work);
  /// Gives the current stream what was recorded.
  void replay();

 private:
  struct Recorded;
  std::unique_ptr<Recorded> recorded_;
};

}  // namespace hortator::machine
