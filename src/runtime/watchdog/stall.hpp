#pragma once

#include <algorithm>
#include <optional>
#include <span>
#include <vector>

#include "runtime/watchdog/slot.hpp"

namespace hortator::runtime {

/// The time limits of waits, in seconds.
struct StallLimits {
  double limit = 600;
  double for_the_gone = 10;  ///< for dead ranks: their last messages can still arrive
  double for_a_circle = 10;  ///< for ranks that wait for each other in a cycle: none can continue

  double shortest() const { return std::min(for_the_gone, for_a_circle); }

  /// A communicator's first collective may set things up: connections, memory, device libraries.
  double of(const RankRecord::Wait& wait) const { return wait.sequence == 1 ? 2 * limit : limit; }
};

/// Why a collective does not end.
enum class StallKind {
  absent,   ///< `culprits` or their devices have not entered it, and do not wait elsewhere
  apart,    ///< ranks wait for each other in different collectives
  inside,   ///< all ranks are in it
  unknown,  ///< all ranks that are known are in it
};

/// A collective that does not end.
struct Stall {
  /// Ranks that wait in the same collective.
  struct Side {
    RankRecord::Wait wait;
    std::vector<const RankRecord*> ranks;  ///< by number
    double seconds = 0;                    ///< the longest wait
  };

  StallKind kind = StallKind::absent;
  std::vector<const RankRecord*> culprits = {};  ///< by number; for `apart` those of the smallest side
  std::vector<Side> sides = {};                  ///< first the longest wait, then the collectives that it waits for
  bool is_on_devices = false;                    ///< for `inside`: it runs on the devices of all ranks
  int unknown = 0;  ///< number of ranks of the first side's communicator whose status is unknown
};

/// The stall that must be reported now, if any. `slots` holds all known ranks. Nothing is reported while a rank that
/// others wait for is held by a debugger or works in a patient phase. Pure.
std::optional<Stall> find_stall(std::span<const RankRecord> slots, const StallLimits& patience);

/// Whether any rank waits in a communicator with ranks that are not among `slots`. Pure.
bool somebody_waits_for_unknown(std::span<const RankRecord> slots);

}  // namespace hortator::runtime
