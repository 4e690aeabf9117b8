#pragma once

#include <csignal>
#include <optional>

namespace hortator::tools {

/// Holds back the signals that ask a launch to stop, so that none ends this process between two attempts: supervise()
/// takes those that come while ranks run, and wait() the others. Restores the mask, so that what has come since then
/// takes effect.
class HeldSignals {
 public:
  HeldSignals();
  ~HeldSignals();
  HeldSignals(const HeldSignals&) = delete;
  HeldSignals& operator=(const HeldSignals&) = delete;

  /// Waits that long, or until one has come, and returns it. Each signal is returned once.
  std::optional<int> wait(double seconds) const;

 private:
  sigset_t held_;
  sigset_t before_;
};

}  // namespace hortator::tools
