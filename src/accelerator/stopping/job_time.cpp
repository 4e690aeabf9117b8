#include "accelerator/stopping/job_time.hpp"

#include <algorithm>

#include "runtime/ending/kill_grace.hpp"

namespace hortator::accelerator {
namespace {

runtime::Deadline now() { return std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now()); }

std::optional<std::chrono::seconds> until(const std::optional<runtime::Deadline>& deadline) {
  return deadline ? std::optional(std::max(*deadline - now(), std::chrono::seconds(0))) : std::nullopt;
}

}  // namespace

JobTime::JobTime()
    : known_(runtime::known_deadline(core::process_variables())),
      margin_(runtime::stop_margin(core::process_variables())),
      grace_(runtime::kill_grace(runtime::launcher().kind, core::process_variables())) {}

std::optional<std::chrono::seconds> JobTime::known_left() const { return until(known_); }

std::optional<std::chrono::seconds> JobTime::ask_left() {
  constexpr auto rarely = std::chrono::minutes(10);
  if (known_) return until(known_);
  const auto at = std::chrono::steady_clock::now();
  if (!asked_at_ || at - *asked_at_ >= rarely) {
    asked_ = runtime::ask_deadline(core::process_variables(), runtime::ask_shell(), now());
    asked_at_ = at;
  }
  return until(asked_);
}

std::chrono::milliseconds JobTime::until_killed(std::chrono::milliseconds since_signal) const {
  return grace_ - since_signal;
}

}  // namespace hortator::accelerator
