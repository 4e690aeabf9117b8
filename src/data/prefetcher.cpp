#include "data/prefetcher.hpp"

#include <utility>

namespace hortator::data {

Prefetcher::Prefetcher(Produce produce, std::int64_t steps, int depth)
    : produce_(std::move(produce)), steps_(steps), depth_(static_cast<std::size_t>(depth)) {
  if (depth_ > 0 && steps_ > 0) thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
}

Prefetcher::Batch Prefetcher::next() {
  if (depth_ == 0) return produce_(taken_++);
  Outcome outcome;
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !ready_.empty(); });
    outcome = std::move(ready_.front());
    ready_.pop_front();
  }
  changed_.notify_all();
  if (outcome.problem) std::rethrow_exception(outcome.problem);
  return std::move(outcome.batch);
}

void Prefetcher::run(const std::stop_token& stop) {
  for (std::int64_t step = 0; step < steps_ && wait_for_room(stop); ++step) {
    Outcome outcome = make(step);
    const bool failed = outcome.problem != nullptr;
    {
      std::lock_guard lock(mutex_);
      ready_.push_back(std::move(outcome));
    }
    changed_.notify_all();
    if (failed) return;
  }
}

bool Prefetcher::wait_for_room(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, stop, [this] { return ready_.size() < depth_; });
  return !stop.stop_requested();
}

Prefetcher::Outcome Prefetcher::make(std::int64_t step) {
  try {
    return {produce_(step), nullptr};
  } catch (...) {
    return {nullptr, std::current_exception()};
  }
}

}  // namespace hortator::data
