#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <vector>

#include "core/activity/activity.hpp"

namespace hortator::runtime {

/// How long this process has been in a collective, as counted by a thread that looks from time to time. Only time in
/// which that thread ran counts: a job that is suspended and goes on has not waited. Needs no clock in the collectives.
class WaitClock {
 public:
  using Duration = std::chrono::duration<double>;
  struct Wait {
    activity::Operation operation;
    std::uint64_t visit = 0;  ///< another one each time
    Duration waited{};
  };

  /// Sees the collectives of one family. More than `longest_step` between two looks is time in which nothing ran.
  WaitClock(std::uint64_t family, Duration longest_step) : family_(family), longest_step_(longest_step) {}

  /// What is seen now, `elapsed` after the last look.
  void look(const activity::View& view, Duration elapsed);

  /// The collective that has lasted longest.
  const std::optional<Wait>& longest() const { return longest_; }
  /// How long no collective has been seen.
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
