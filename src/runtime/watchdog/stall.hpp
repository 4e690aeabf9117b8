#pragma once

#include <algorithm>
#include <optional>
#include <span>
#include <vector>

#include "runtime/watchdog/slot.hpp"

namespace hortator::runtime {

/// When waiting has become too long, in seconds.
struct Patience {
  double limit = 600;
  double for_the_gone = 10;  ///< for ranks that cannot come any more: what they sent last has to arrive
  double for_a_circle = 10;  ///< for ranks that wait for each other in turn: none can go on by itself

  double shortest() const { return std::min(for_the_gone, for_a_circle); }

  /// A communicator's first collective may set things up: connections, memory, device libraries.
  double of(const Slot::Wait& wait) const { return wait.sequence == 1 ? 2 * limit : limit; }
};

/// Why a collective does not end.
struct Stall {
  enum class Kind {
    absent,   ///< `culprits` have not come to it, or their devices have not, and do not wait elsewhere
    apart,    ///< ranks wait for each other in different collectives
    inside,   ///< all ranks are in it
    unknown,  ///< all ranks that are known are in it
  };
  /// Ranks that wait in the same collective.
  struct Side {
    Slot::Wait wait;
    std::vector<const Slot*> ranks;  ///< by number
    double seconds = 0;              ///< the longest wait
  };

  Kind kind = Kind::absent;
  std::vector<const Slot*> culprits = {};  ///< by number; `apart`: the smallest side's
  std::vector<Side> sides = {};            ///< first the one that has lasted longest; more: what that one waits for
  bool is_on_devices = false;              ///< `inside`: and it runs on the devices of all of them
  int unknown = 0;                         ///< ranks of the first side's communicator of which nothing is known
};

/// The stall that has to be reported now, if there is one. `slots` are those of all ranks that are known. Nobody is
/// reported while a rank that others wait for is held by a debugger or works in a patient phase. Pure.
std::optional<Stall> find_stall(std::span<const Slot> slots, const Patience& patience);

/// Does anybody wait in a communicator with ranks that are not among `slots`? Pure.
bool somebody_waits_for_unknown(std::span<const Slot> slots);

}  // namespace hortator::runtime
