#pragma once

#include <string>
#include <vector>

namespace hortator::comm {

/// Who called what, for ranks that should all have called the same.
struct CallTable {
  int odd_rank = 0;   ///< the first of the ranks that are in the minority
  std::string lines;  ///< "rank 1: barrier; ranks 0,2-3: all_reduce (sum) of Float [3] at train+0x2f41"

  std::string text() const { return "the ranks are in different collectives: " + lines; }
};

/// `calls` of the ranks `ranks`, not all alike. Groups of ranks that called alike, the smallest first.
CallTable tabulate(const std::vector<std::string>& calls, const std::vector<int>& ranks);
/// The same of all ranks, in rank order.
CallTable tabulate(const std::vector<std::string>& calls);

}  // namespace hortator::comm
