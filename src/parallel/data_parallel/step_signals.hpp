#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "parallel/data_parallel/step_votes.hpp"

namespace hortator::parallel {

/// What the ranks tell each other once a pass beside the gradients. One rank's signals travel as floats that are added
/// up or averaged over the ranks; a signal of the sum is set where some rank has set it.
struct StepSignals {
  /// Which signals travel, and how many of each. The same on all ranks.
  struct Layout {
    bool missing = false;
    bool new_order = false;
    bool votes = false;
    std::size_t parameters = 0;  ///< whose `used` travels
    std::size_t arrays = 0;      ///< whose `leftovers` travel

    std::size_t size() const;  ///< number of floats
  };

  bool missing = false;              ///< a parameter that must have a gradient has none
  bool new_order = false;            ///< backward reached the parameters in an order that was not agreed on
  Ballot votes = {};                 ///< what is to be done at the end of the step
  std::vector<bool> used = {};       ///< of each parameter: it got a gradient
  std::vector<bool> leftovers = {};  ///< of each array: gradients came after it was sent

  /// The message of layout.size() floats, 0 or 1 each. Signals that are not in the layout are left out; vectors that
  /// are shorter than the layout says are padded with false.
  std::vector<float> encode(const Layout& layout) const;
  /// Reads a sum or mean of such messages. Throws std::invalid_argument unless it has layout.size() floats.
  static StepSignals decode(std::span<const float> message, const Layout& layout);
};

}  // namespace hortator::parallel
