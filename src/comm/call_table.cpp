#include "comm/call_table.hpp"

#include <algorithm>
#include <map>

#include "base/text.hpp"
#include "runtime/cpu_set.hpp"

namespace hortator::comm {
CallTable tabulate(const std::vector<std::string>& calls) {
  std::map<std::string, std::vector<int>> by_call;
  for (std::size_t rank = 0; rank < calls.size(); ++rank) by_call[calls[rank]].push_back(static_cast<int>(rank));
  std::vector<std::pair<std::vector<int>, std::string>> groups;
  for (auto& [call, ranks] : by_call) groups.emplace_back(std::move(ranks), call);
  // Of groups of one size rank 0's comes last: its ways are what the others are measured by.
  std::sort(groups.begin(), groups.end(), [](const auto& a, const auto& b) {
    return std::pair(a.first.size(), -a.first.front()) < std::pair(b.first.size(), -b.first.front());
  });
  std::vector<std::string> lines;
  for (const auto& [ranks, call] : groups) {
    lines.push_back(text::concat(ranks.size() == 1 ? "rank " : "ranks ", runtime::to_ranges(ranks), ": ", call));
  }
  return {.odd_rank = groups.front().first.front(), .lines = text::join(lines, "; ")};
}

}  // namespace hortator::comm
