#pragma once

#include <string>
#include <vector>

namespace hortator::comm {

/// Which ranks called what, where all should have made the same call.
struct CallTable {
  int odd_rank = 0;   ///< the first of the ranks that are in the minority
  std::string lines;  ///< "rank 1: barrier; ranks 0,2-3: all_reduce (sum) of Float [3] at train+0x2f41"

  std::string text() const { return "The ranks are in different collectives: " + lines; }
};

/// Groups the ranks by their calls, which are not all equal, the smallest group first. `ranks` are the callers'
/// numbers.
CallTable tabulate(const std::vector<std::string>& calls, const std::vector<int>& ranks);
/// The same of all ranks, in rank order.
CallTable tabulate(const std::vector<std::string>& calls);

}  // namespace hortator::comm
