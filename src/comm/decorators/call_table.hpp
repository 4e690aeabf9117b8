#pragma once

#include <hortator/error.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace hortator::comm {

/// Which ranks called what, where all should have made the same call.
struct CallTable {
  int odd_rank = 0;   ///< the first of the ranks that are in the minority
  std::string lines;  ///< "rank 1: barrier; ranks 0,2-3: all_reduce (sum) of Float [3] at train+0x2f41"
};

/// Groups the ranks by their calls, which are not all equal, the smallest group first. `ranks` are the callers'
/// numbers.
CallTable tabulate(const std::vector<std::string>& calls, const std::vector<int>& ranks);
/// The same of all ranks, in rank order.
CallTable tabulate(const std::vector<std::string>& calls);

/// The problem of ranks that are in different collectives.
Problem different_calls(const CallTable& table);
/// The problem of ranks that are all in `verb`, with tensors of different shapes.
Problem different_shapes(const CallTable& table, std::string_view verb);

}  // namespace hortator::comm
