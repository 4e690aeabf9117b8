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
  // Among groups of equal size the one with the lowest rank comes last: that rank is taken as the standard.
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

Problem different_calls(const CallTable& table) {
  return {.what = "The ranks are in different collectives: " + table.lines,
          .why = "all ranks must make the same calls in the same order",
          .hint = "look for a collective under a condition that only some ranks meet"};
}

Problem different_shapes(const CallTable& table, std::string_view verb) {
  std::string hint = "pad_across_processes makes sizes equal";
  if (verb == "all_gather") hint += "; gather_to_main takes sizes that differ along dimension 0";
  if (verb.starts_with("broadcast")) hint = "pass a tensor of the shape that is sent on every rank";
  return {.what = "The ranks pass tensors of different shapes: " + table.lines,
          .why = "a collective needs the same shape on all ranks",
          .hint = hint};
}

}  // namespace hortator::comm
