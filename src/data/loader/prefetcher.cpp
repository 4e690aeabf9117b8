#include "data/loader/prefetcher.hpp"

#include <algorithm>
#include <utility>

namespace hortator::data {
namespace {

constexpr std::chrono::microseconds handover(20);  // approximate cost of handing a batch to another thread

}  // namespace

Prefetcher::Prefetcher(Produce produce, std::int64_t steps, const Ahead& ahead)
    : produce_(std::move(produce)), steps_(steps) {
  if (ahead.batches == 0) return;
  const auto slots = std::min<std::int64_t>(std::max(ahead.batches, ahead.workers), steps);
  outcomes_.resize(static_cast<std::size_t>(slots));
  may_pause_ = ahead.workers == 1 && ahead.pause != WorkerPause::never;
  worker_pauses_ = may_pause_ && ahead.pause == WorkerPause::from_start;
  if (worker_pauses_) {
    left_at_ = Clock::now();
    return;
  }
  const auto workers = std::min<std::int64_t>(ahead.workers, steps);
  try {
    for (std::int64_t i = 0; i < workers; ++i) workers_.emplace_back([this] { run(); });
  } catch (...) {
    stop();
    throw;
  }
}

Prefetcher::~Prefetcher() { stop(); }

void Prefetcher::stop() {
  {
    const std::lock_guard lock(mutex_);
    is_over_ = true;
  }
  room_.notify_all();
}

std::optional<Prefetcher::Outcome>& Prefetcher::slot_of(std::int64_t step) {
  return outcomes_[static_cast<std::size_t>(step) % outcomes_.size()];
}

Prefetcher::Batch Prefetcher::next() {
  if (outcomes_.empty()) return produce_(taken_++);
  std::unique_lock lock(mutex_);
  const bool paused = std::exchange(worker_pauses_, may_pause_ && Clock::now() - left_at_ < handover);
  if (paused && !worker_pauses_) begin_work();
  auto batch = worker_pauses_ && claimed_ == taken_ ? made_here(lock) : taken_from(lock);
  left_at_ = Clock::now();
  return batch;
}

void Prefetcher::begin_work() {
  if (workers_.empty()) workers_.emplace_back([this] { run(); });
  room_.notify_one();
}

Prefetcher::Batch Prefetcher::taken_from(std::unique_lock<std::mutex>& lock) {
  auto& slot = slot_of(taken_);
  ready_.wait(lock, [&] { return slot.has_value(); });
  auto outcome = *std::exchange(slot, std::nullopt);
  ++taken_;
  const bool is_awaited = !worker_pauses_;
  lock.unlock();
  if (is_awaited) room_.notify_one();
  if (outcome.problem) std::rethrow_exception(outcome.problem);
  return std::move(outcome.batch);
}

// The worker pauses meanwhile, so that no two threads read at a time.
Prefetcher::Batch Prefetcher::made_here(std::unique_lock<std::mutex>& lock) {
  const auto step = taken_++;
  claimed_ = taken_;
  lock.unlock();
  return produce_(step);
}

void Prefetcher::run() {
  while (const auto step = claim()) put(*step, make(*step));
}

// Steps are claimed in order: when one fails, all earlier ones are done or being made.
std::optional<std::int64_t> Prefetcher::claim() {
  std::unique_lock lock(mutex_);
  const auto ahead = static_cast<std::int64_t>(outcomes_.size());
  room_.wait(lock, [&] { return is_over_ || claimed_ == steps_ || (!worker_pauses_ && claimed_ < taken_ + ahead); });
  if (is_over_ || claimed_ == steps_) return {};
  return claimed_++;
}

Prefetcher::Outcome Prefetcher::make(std::int64_t step) const {
  try {
    return {produce_(step), nullptr};
  } catch (...) {
    return {nullptr, std::current_exception()};
  }
}

void Prefetcher::put(std::int64_t step, Outcome outcome) {
  std::unique_lock lock(mutex_);
  is_over_ |= outcome.problem != nullptr;
  const bool has_ended = is_over_;
  const bool is_next = step == taken_;
  slot_of(step) = std::move(outcome);
  lock.unlock();
  if (is_next) ready_.notify_one();
  if (has_ended) room_.notify_all();
}

}  // namespace hortator::data
