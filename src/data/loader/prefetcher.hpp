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

/// Whether a single worker rests while the caller comes back at once: then there is no work to read ahead beside, and
/// handing batches over would cost more than it hides.
enum class Rest {
  never,         ///< others wait for what it makes
  when_hurried,  ///< once the caller is seen to hurry
  from_start,    ///< it hurried through the last pass: until it is seen not to
};

/// How far production runs ahead of use.
struct Ahead {
  int batches = 1;  ///< made or in the making, of all workers together; 0: made when they are asked for
  int workers = 1;  ///< threads, each of which may be making one batch: with more of them more batches are ahead
  Rest rest = Rest::when_hurried;
};

/// Produces batches 0, 1, ... in order of their use, on threads of its own; with 0 batches ahead in the caller's. What
/// the producer throws comes out of the next() of that batch; no later one is begun then. Destruction waits for the
/// batches that are being made.
class Prefetcher {
 public:
  using Batch = std::shared_ptr<void>;
  using Produce = std::function<Batch(std::int64_t step)>;

  Prefetcher(Produce produce, std::int64_t steps, const Ahead& ahead);
  ~Prefetcher();
  Prefetcher(const Prefetcher&) = delete;
  Prefetcher& operator=(const Prefetcher&) = delete;

  /// The next batch. To be called at most `steps` times, and not again once it threw.
  Batch next();

  /// Whether the caller has been in a hurry of late.
  bool rests() const { return worker_rests_; }

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
  std::optional<Outcome>& place_of(std::int64_t step);

  Produce produce_;
  std::int64_t steps_;

  std::mutex mutex_;
  std::condition_variable room_;                  ///< for one batch more, or none is wanted any more
  std::condition_variable ready_;                 ///< the batch that is next
  std::vector<std::optional<Outcome>> outcomes_;  ///< round and round, a place for each batch ahead
  std::int64_t claimed_ = 0;
  std::int64_t taken_ = 0;
  bool is_over_ = false;  ///< no batch is to be begun
  bool may_rest_ = false;
  bool worker_rests_ = false;          ///< the caller makes what nobody has begun
  Clock::time_point left_at_;          ///< when the caller was last given a batch
  std::vector<std::jthread> workers_;  // last: joined before what they use goes
};

}  // namespace hortator::data
