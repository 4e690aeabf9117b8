#include "tools/trace/flight_trace.hpp"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "core/text/text.hpp"
#include "core/text/units.hpp"
#include "tools/why/why_view.hpp"

namespace hortator::tools {
namespace {

using FlightEvent = nlohmann::ordered_json;
using runtime::FlightRecord;

double last_time(const std::vector<FlightRecord>& flight) {
  double last = 0;
  for (const auto& record : flight) last = std::max({last, record.begun, record.ended});
  return last;
}

std::set<std::string> uneven_groups(const std::vector<GroupProgress>& progress) {
  std::map<std::string, std::set<std::pair<std::uint64_t, bool>>> stands;
  for (const auto& each : progress) stands[each.group].emplace(each.sequence, each.is_inside);
  std::set<std::string> uneven;
  for (const auto& [group, all] : stands) {
    if (all.size() > 1) uneven.insert(group);
  }
  return uneven;
}

std::string progress_line(const std::vector<int>& ranks, const GroupProgress& progress) {
  const auto call = text::concat(progress.name, " #", progress.sequence, " (", units::bytes(progress.bytes), ")");
  return text::concat(ranks_text(ranks), ": ", progress.is_inside ? "in " : "left ", call,
                      progress.is_inside ? text::print(" for %.3f s", progress.seconds) : "");
}

}  // namespace

std::vector<GroupProgress> progress_of(const std::vector<FlightRecord>& flight) {
  const double last = last_time(flight);
  std::map<std::pair<std::string, int>, GroupProgress> newest;
  for (const auto& record : flight) {
    auto& progress = newest[{record.group, record.rank}];
    // A wait for an earlier collective comes after the start of later ones.
    if (record.sequence < progress.sequence) continue;
    progress = {.group = record.group,
                .size = record.size,
                .rank = record.rank,
                .sequence = record.sequence,
                .name = record.name,
                .bytes = record.bytes,
                .is_inside = record.ended == 0,
                .seconds = (record.ended == 0 ? last : record.ended) - record.begun};
  }
  // A rank that waits for an earlier collective of the group has not left it.
  for (const auto& record : flight) {
    auto& progress = newest[{record.group, record.rank}];
    if (record.ended != 0 || record.sequence >= progress.sequence) continue;
    progress.sequence = record.sequence;
    progress.name = record.name;
    progress.bytes = record.bytes;
    progress.is_inside = true;
    progress.seconds = last - record.begun;
  }
  std::vector<GroupProgress> list;
  for (auto& [key, progress] : newest) list.push_back(std::move(progress));
  const auto uneven = uneven_groups(list);
  std::ranges::stable_sort(list, [&](const GroupProgress& a, const GroupProgress& b) {
    return uneven.contains(a.group) > uneven.contains(b.group);
  });
  return list;
}

std::string flight_table(const std::vector<FlightRecord>& flight) {
  const auto progress = progress_of(flight);
  const auto uneven = uneven_groups(progress);
  std::string table;
  for (std::size_t begin = 0; begin < progress.size();) {
    const auto& first = progress[begin];
    table += text::concat("group ", first.group, " of ", text::count(first.size, "rank"),
                          uneven.contains(first.group) ? ": its ranks are not in the same collective" : "", '\n');
    std::size_t shown_ranks = 0;
    std::map<std::pair<std::uint64_t, bool>, std::pair<std::vector<int>, GroupProgress>> stands;
    for (; begin < progress.size() && progress[begin].group == first.group; ++begin) {
      auto& [ranks, shown] = stands[{progress[begin].sequence, progress[begin].is_inside}];
      ranks.push_back(progress[begin].rank);
      if (ranks.size() == 1 || progress[begin].seconds > shown.seconds) shown = progress[begin];
    }
    for (const auto& [stand, line] : stands) shown_ranks += line.first.size();
    if (const auto silent = first.size - static_cast<int>(shown_ranks); silent > 0)
      table += text::concat("  ", text::count(silent, "rank"), " of it: no record\n");
    for (const auto& [stand, line] : stands) table += "  " + progress_line(line.first, line.second) + '\n';
  }
  return table.empty() ? "no collectives are recorded\n" : table;
}

std::vector<FlightEvent> flight_events(const std::vector<FlightRecord>& flight) {
  constexpr double second = 1e6;  // in microseconds
  const double last = last_time(flight);
  double first = last;
  std::set<int> ranks;
  for (const auto& record : flight) {
    first = std::min(first, record.begun);
    ranks.insert(record.rank);
  }
  std::vector<FlightEvent> events;
  for (const int rank : ranks) {
    events.push_back({{"ph", "M"},
                      {"name", "process_name"},
                      {"pid", rank},
                      {"tid", 0},
                      {"args", {{"name", text::concat("rank ", rank)}}}});
  }
  for (const auto& record : flight) {
    const bool is_inside = record.ended == 0;
    events.push_back({{"ph", "X"},
                      {"cat", "collective"},
                      {"name", is_inside ? record.name + " (not ended)" : record.name},
                      {"pid", record.rank},
                      {"tid", 0},
                      {"ts", (record.begun - first) * second},
                      {"dur", ((is_inside ? last : record.ended) - record.begun) * second},
                      {"args",
                       {{"sequence", record.sequence},
                        {"bytes", record.bytes},
                        {"group", record.group},
                        {"group size", record.size}}}});
  }
  return events;
}

}  // namespace hortator::tools
