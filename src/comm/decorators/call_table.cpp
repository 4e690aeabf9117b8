#include "comm/decorators/call_table.hpp"

#include <algorithm>
#include <map>
#include <numeric>

#include "core/text/text.hpp"
#include "machine/cpu/cpu_set.hpp"

namespace hortator::comm {

CallTable tabulate(const std::vector<std::string>& calls, const std::vector<int>& ranks) {
  std::map<std::string, std::vector<int>> by_call;
  for (std::size_t i = 0; i < calls.size(); ++i) by_call[calls[i]].push_back(ranks[i]);
  std::vector<std::pair<std::vector<int>, std::string>> groups;
  for (auto& [call, callers] : by_call) groups.emplace_back(std::move(callers), call);
  // Of groups of equal size the one with the lowest rank comes last: that rank is taken as the standard.
  std::sort(groups.begin(), groups.end(), [](const auto& a, const auto& b) {
    return std::pair(a.first.size(), -a.first.front()) < std::pair(b.first.size(), -b.first.front());
  });
  std::vector<std::string> lines;
  for (const auto& [callers, call] : groups) {
    lines.push_back(text::concat(callers.size() == 1 ? "rank " : "ranks ", machine::to_ranges(callers), ": ", call));
  }
  return {.odd_rank = groups.front().first.front(), .lines = text::join(lines, "; ")};
}

CallTable tabulate(const std::vector<std::string>& calls) {
  std::vector<int> ranks(calls.size());
  std::iota(ranks.begin(), ranks.end(), 0);
  return tabulate(calls, ranks);
}

}  // namespace hortator::comm
