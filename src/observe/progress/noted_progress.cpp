#include "observe/progress/noted_progress.hpp"

namespace hortator::observe {

void SilentProgress::start(std::string_view /*title*/, std::int64_t /*total*/, std::int64_t /*done*/) {}
void SilentProgress::advance() {}
void SilentProgress::set(std::string_view /*name*/, Loggable /*value*/) {}
void SilentProgress::finish() noexcept {}

void NotedProgress::start(std::string_view title, std::int64_t total, std::int64_t done) {
  loops_.push_back(
      {.title = std::string(title), .total = total, .first = done, .done = done, .begin = Clock::now(), .rate = {}});
  inner_->start(title, total, done);
}

void NotedProgress::advance() {
  if (!loops_.empty()) ++loops_.back().done;
  inner_->advance();
  on_step_();
}

void NotedProgress::finish() noexcept {
  if (loops_.size() == 1) last_ = std::move(loops_.front());
  if (!loops_.empty()) loops_.pop_back();
  inner_->finish();
}

std::vector<observe::LoopStatus> NotedProgress::loops() {
  std::vector<observe::LoopStatus> all;
  for (auto& loop : loops_) {
    const double elapsed = std::chrono::duration<double>(Clock::now() - loop.begin).count();
    loop.rate.update(loop.done - loop.first, elapsed);
    all.push_back(status_of(loop));
  }
  return all;
}

std::vector<observe::LoopStatus> NotedProgress::last_loops() const {
  std::vector<observe::LoopStatus> all;
  for (const auto& loop : loops_) all.push_back(status_of(loop));
  if (all.empty() && last_) all.push_back(status_of(*last_));
  return all;
}

observe::LoopStatus NotedProgress::status_of(const Loop& loop) {
  return {.title = loop.title, .done = loop.done, .total = loop.total, .per_second = loop.rate.per_second()};
}

}  // namespace hortator::observe
