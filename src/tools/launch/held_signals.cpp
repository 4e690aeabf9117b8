#include "tools/launch/held_signals.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>

#include "tools/launch/supervise.hpp"

namespace hortator::tools {

HeldSignals::HeldSignals() : held_(stopping_signals()) { sigprocmask(SIG_BLOCK, &held_, &before_); }

HeldSignals::~HeldSignals() { sigprocmask(SIG_SETMASK, &before_, nullptr); }

std::optional<int> HeldSignals::wait(double seconds) const {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  while (true) {
    const auto left = std::max(Clock::duration::zero(), end - Clock::now());
    const auto whole = std::chrono::duration_cast<std::chrono::seconds>(left);
    const timespec time = {.tv_sec = whole.count(), .tv_nsec = std::chrono::nanoseconds(left - whole).count()};
    const int signal = sigtimedwait(&held_, nullptr, &time);
    if (signal > 0) return signal;
    if (errno != EINTR) return {};
  }
}

}  // namespace hortator::tools
