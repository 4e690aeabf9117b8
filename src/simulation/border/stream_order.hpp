#pragma once

#include <c10/core/Stream.h>

#include <vector>

namespace hortator::simulation {

/// While it lives, work of this thread on the run's device comes after what the caller's streams had to do, and at its
/// end later work of these streams comes after it. Never waits.
class StreamOrder {
 public:
  explicit StreamOrder(const std::vector<c10::Stream>& streams);
  ~StreamOrder();
  StreamOrder(const StreamOrder&) = delete;
  StreamOrder& operator=(const StreamOrder&) = delete;

 private:
  const std::vector<c10::Stream>& streams_;
};

}  // namespace hortator::simulation
