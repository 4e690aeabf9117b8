#include "tools/trace/collectives.hpp"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>

#include "core/text/text.hpp"

namespace hortator::tools {
namespace {

using EventJson = nlohmann::ordered_json;

constexpr auto facts_name = "record_param_comms";
constexpr auto wait_name = "wait";
constexpr std::string_view description_begin = "hortator ";
constexpr std::array<std::string_view, 4> meeting_names = {"all_reduce", "all_gather", "reduce_scatter", "barrier"};
// Its calls return when the device has been given the work.
constexpr std::string_view device_backend = "nccl";

/// "hortator node #12": back end and sequence number.
std::optional<std::pair<std::string, std::uint64_t>> parse_description(std::string_view text) {
  if (!text.starts_with(description_begin)) return {};
  text.remove_prefix(description_begin.size());
  const auto hash = text.find(" #");
  long long sequence = 0;
  if (hash == std::string_view::npos || !text::parse_integer(std::string(text.substr(hash + 2)), sequence)) return {};
  return std::pair(std::string(text.substr(0, hash)), static_cast<std::uint64_t>(sequence));
}

std::string text_of(const EventJson& arguments, const char* name) {
  const auto found = arguments.find(name);
  return found != arguments.end() && found->is_string() ? found->get<std::string>() : "";
}

std::int64_t number_in(const EventJson& arguments, const char* name) {
  const auto found = arguments.find(name);
  return found != arguments.end() && found->is_number() ? found->get<std::int64_t>() : 0;
}

}  // namespace

void CollectiveReader::take(const EventJson& event) {
  if (text_of(event, "name") != facts_name || !event.contains("args") || !event.contains("dur")) return;
  const auto& arguments = event["args"];
  const auto description = parse_description(text_of(arguments, "Process Group Description"));
  if (!description) return;
  const auto name = text_of(arguments, "Collective name");
  const double begin = event.value("ts", 0.0);
  const double end = begin + event.value("dur", 0.0);
  const auto group = text_of(arguments, "Process Group Name");
  const auto key = std::pair(group, description->second);
  if (name == wait_name) {
    const auto started = found_.find(key);
    if (started == found_.end()) return;  // it had been started before the recording
    started->second.wait_begin = begin;
    started->second.wait_end = end;
    return;
  }
  found_[key] = {.name = name,
                 .backend = description->first,
                 .group = group,
                 .sequence = description->second,
                 .bytes = number_in(arguments, "In msg nelems"),
                 .size = static_cast<int>(number_in(arguments, "Group size")),
                 .begin = begin,
                 .end = end};
}

std::vector<TracedCollective> CollectiveReader::collectives() const {
  std::vector<TracedCollective> list;
  for (const auto& [key, collective] : found_) list.push_back(collective);
  std::ranges::stable_sort(list, {}, &TracedCollective::begin);
  return list;
}

std::vector<Meeting> meetings_of(const std::vector<TracedCollective>& collectives) {
  // A call that returns before the others have entered is waited for later. At the end of a recording the wait may be
  // missing: then the call's own end says nothing.
  std::set<std::pair<std::string, std::string>> waited_for;
  for (const auto& each : collectives) {
    if (each.wait_end >= 0) waited_for.emplace(each.backend, each.name);
  }
  std::vector<Meeting> meetings;
  for (const auto& each : collectives) {
    if (each.backend == device_backend || std::ranges::find(meeting_names, each.name) == meeting_names.end()) continue;
    if (each.wait_end < 0 && waited_for.contains({each.backend, each.name})) continue;
    meetings.push_back({.group = each.group, .sequence = each.sequence, .begin = each.begin, .end = each.over()});
  }
  return meetings;
}

JoinedCollectives join(const std::vector<std::vector<TracedCollective>>& of_ranks) {
  JoinedCollectives joined;
  for (std::size_t rank = 0; rank < of_ranks.size(); ++rank) {
    for (const auto& each : of_ranks[rank]) {
      const auto [found, is_new] = joined.try_emplace({each.group, each.sequence});
      auto& all = found->second;
      if (is_new || each.begin < all.first_begin) all.first_begin = each.begin;
      if (is_new || each.begin > all.last_begin) {
        all.last_begin = each.begin;
        all.last_rank = static_cast<int>(rank);
      }
      all.ranks.push_back(static_cast<int>(rank));
    }
  }
  return joined;
}

}  // namespace hortator::tools
