#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <vector>

#include "core/activity/activity.hpp"

namespace hortator::runtime {

/// Measures how long this process has been in a collective, by a thread that samples it. Only time in which that thread
/// ran counts, so that a suspended job has not waited when it resumes. Collectives need no clock.
class WaitClock {
 public:
  using Duration = std::chrono::duration<double>;
  struct Wait {
    activity::Operation operation;
    std::uint64_t visit = 0;  ///< unique for each visit
    Duration waited{};
  };

  /// Considers the collectives of one family. Time beyond `longest_step` between two samples does not count: the
  /// process was suspended.
  WaitClock(std::uint64_t family, Duration longest_step) : family_(family), longest_step_(longest_step) {}

  /// Takes a sample, `elapsed` after the last one.
  void look(const activity::View& view, Duration elapsed);

  /// The collective that has lasted longest.
  const std::optional<Wait>& longest() const { return longest_; }
  /// The time since a collective was last seen.
  Duration outside() const { return outside_; }

 private:
  struct Thread {
    std::uint64_t visit = 0;
    Duration waited{};
  };

  std::uint64_t family_;
  Duration longest_step_;
  std::vector<Thread> threads_;
  std::optional<Wait> longest_;
  Duration outside_{};
};

}  // namespace hortator::runtime
