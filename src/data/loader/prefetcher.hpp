#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

namespace hortator::data {

/// When a single worker pauses and the caller makes batches itself. If the caller asks for the next batch at once,
/// there is no work to overlap with, and handing batches over costs more than it hides.
enum class WorkerPause {
  never,         ///< other ranks wait for the worker's batches
  when_hurried,  ///< once the caller asks for batches without delay
  from_start,    ///< the last pass was hurried: pause until the caller is slower
};

/// How far production runs ahead of use.
struct Ahead {
  int batches = 1;  ///< made or being made, by all workers together; 0: the caller makes them
  int workers = 1;  ///< threads; at least one batch is made ahead for each
  WorkerPause pause = WorkerPause::when_hurried;
};

/// Makes batches 0, 1, ... in order on its own threads, or with 0 batches ahead on the caller's. next() rethrows what
/// the producer threw for that batch; no later batch is begun then. Destruction waits for the batches that are being
/// made.
class Prefetcher {
 public:
  using Batch = std::shared_ptr<void>;
  using Produce = std::function<Batch(std::int64_t step)>;

  Prefetcher(Produce produce, std::int64_t steps, const Ahead& ahead);
  ~Prefetcher();
  Prefetcher(const Prefetcher&) = delete;
  Prefetcher& operator=(const Prefetcher&) = delete;

  /// Returns the next batch. Call it at most `steps` times, and not again after it has thrown.
  Batch next();

  /// Whether the caller asked for the latest batches without delay.
  bool is_hurried() const { return worker_pauses_; }

 private:
  using Clock = std::chrono::steady_clock;
  struct Outcome {
    Batch batch;
    std::exception_ptr problem;
  };
  Batch taken_from(std::unique_lock<std::mutex>& lock);
  Batch made_here(std::unique_lock<std::mutex>& lock);
  void begin_work();
  void run();
  void stop();
  std::optional<std::int64_t> claim();
  Outcome make(std::int64_t step) const;
  void put(std::int64_t step, Outcome outcome);
  std::optional<Outcome>& slot_of(std::int64_t step);

  Produce produce_;
  std::int64_t steps_;

  std::mutex mutex_;
  std::condition_variable room_;   ///< signalled when one more batch may be begun, or none is wanted any more
  std::condition_variable ready_;  ///< signalled when the next batch is made
  std::vector<std::optional<Outcome>> outcomes_;  ///< ring buffer with one slot for each batch ahead
  std::int64_t claimed_ = 0;
  std::int64_t taken_ = 0;
  bool is_over_ = false;  ///< no more batches are begun
  bool may_pause_ = false;
  bool worker_pauses_ = false;         ///< the caller makes batches that no worker has begun
  Clock::time_point left_at_;          ///< when the caller last received a batch
  std::vector<std::jthread> workers_;  // last member: joined before the members that they use are destroyed
};

}  // namespace hortator::data
