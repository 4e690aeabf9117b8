#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace hortator::simulation {

/// A counter in memory that processes share. Who waits for it to advance sleeps, so that the process that will advance
/// it has the CPU. Zeroed memory is a counter at 0.
class SharedCounter {
 public:
  using Time = std::chrono::steady_clock::time_point;

  std::uint32_t value() const { return value_.load(std::memory_order_acquire); }
  /// Wakes all that wait.
  void advance();
  /// Wakes none of those that sleep: they see it when they check again.
  void advance_quietly() { value_.fetch_add(1, std::memory_order_seq_cst); }
  /// Waits until the counter is no longer `seen`, until `deadline`, or without a reason: check again after it. Polls
  /// `spins` times before it sleeps.
  void wait_while(std::uint32_t seen, Time deadline, int spins);

 private:
  std::atomic<std::uint32_t> value_;
  std::atomic<std::uint32_t> waiting_;
};

}  // namespace hortator::simulation
