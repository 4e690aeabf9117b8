#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

namespace hortator::data {

/// Produces batches 0, 1, ... in order, up to `depth` of them ahead of their use, on one thread of its own; with depth
/// 0 in the caller's. What the producer throws comes out of the next() of that batch. Destruction waits for the batch
/// that is being made.
class Prefetcher {
 public:
  using Batch = std::shared_ptr<void>;
  using Produce = std::function<Batch(std::int64_t step)>;

  Prefetcher(Produce produce, std::int64_t steps, int depth);
  Prefetcher(const Prefetcher&) = delete;
  Prefetcher& operator=(const Prefetcher&) = delete;

  /// The next batch. To be called at most `steps` times, and not again once it threw.
  Batch next();

 private:
  struct Outcome {
    Batch batch;
    std::exception_ptr problem;
  };
  void run(const std::stop_token& stop);
  bool wait_for_room(const std::stop_token& stop);
  Outcome make(std::int64_t step);

  Produce produce_;
  std::int64_t steps_;
  std::size_t depth_;
  std::int64_t taken_ = 0;

  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<Outcome> ready_;
  std::jthread thread_;  // last: joined before what it uses goes
};

}  // namespace hortator::data
