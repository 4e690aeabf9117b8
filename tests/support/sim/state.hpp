#pragma once

#include <mutex>

#include "machine/races/race_detector.hpp"
#include "support/sim/sim.hpp"

namespace hortator::sim {

/// Guards queues, blocks, recordings and clocks. No operator runs while it is held.
std::recursive_mutex& state_lock();

// The callers of these hold the lock.
machine::RaceDetector& races();
Counts& mutable_counts();

}  // namespace hortator::sim
