#include "runtime/watchdog/wait_clock.hpp"

#include <algorithm>

namespace hortator::runtime {

void WaitClock::look(const activity::View& view, Duration elapsed) {
  const auto ran = std::min(elapsed, longest_step_);
  threads_.resize(view.threads.size());
  longest_.reset();
  bool moved = false;
  for (std::size_t i = 0; i < threads_.size(); ++i) {
    const auto& [visit, operation, inside] = view.threads[i];
    const bool same = threads_[i].visit == visit;
    moved = moved || !same;
    threads_[i] = {.visit = visit, .waited = same && inside ? threads_[i].waited + ran : Duration{}};
    if (!inside || operation.family != family_) continue;
    if (longest_ && longest_->waited >= threads_[i].waited) continue;
    longest_ = {.operation = operation, .visit = visit, .waited = threads_[i].waited};
  }
  outside_ = moved || longest_ ? Duration{} : outside_ + ran;
}

}  // namespace hortator::runtime
