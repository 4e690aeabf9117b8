#include "tools/trace/merged_trace.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/text/text.hpp"

namespace hortator::tools {
namespace {

using EventOut = nlohmann::ordered_json;

constexpr std::int64_t processes_of_a_rank = 1000;
constexpr std::int64_t arrows_of_a_rank = std::int64_t{1} << 36;
constexpr int collectives_stream = 1000;

std::string phase_of(const EventOut& event) {
  const auto found = event.find("ph");
  return found != event.end() && found->is_string() ? found->get<std::string>() : "";
}

EventOut facts_of(const TracedCollective& collective) {
  return {{"bytes", collective.bytes},
          {"group", collective.group},
          {"group size", collective.size},
          {"sequence", collective.sequence},
          {"back end", collective.backend}};
}

EventOut kernel(int rank, const std::string& name, std::int64_t stream, const TimeRange& time, std::int64_t number) {
  return {{"ph", "X"},
          {"cat", "kernel"},
          {"name", name},
          {"pid", rank},
          {"tid", stream},
          {"ts", time.begin},
          {"dur", time.end - time.begin},
          {"args", {{"device", rank}, {"stream", stream}, {"correlation", number}, {"External id", number}}}};
}

// A program that looks at devices takes a kernel into account if it finds the call that launched it.
EventOut launch_of(const EventOut& kernel, std::int64_t thread) {
  return {{"ph", "X"},
          {"cat", "cuda_runtime"},
          {"name", "cudaLaunchKernel"},
          {"pid", kernel["pid"]},
          {"tid", thread},
          {"ts", kernel["ts"]},
          {"dur", 0.001},
          {"args", {{"correlation", kernel["args"]["correlation"]}, {"cbid", 211}}}};
}

}  // namespace

std::int64_t RankEvents::process_of(const EventOut& process) {
  const auto next = rank_ * processes_of_a_rank + static_cast<std::int64_t>(processes_.size());
  return processes_.try_emplace(process.dump(-1, ' ', false, EventOut::error_handler_t::replace), next).first->second;
}

void RankEvents::move(EventOut& event) {
  const auto phase = phase_of(event);
  if (const auto time = event.find("ts"); time != event.end() && time->is_number())
    *time = time->get<double>() + shift_;
  if (const auto process = event.find("pid"); process != event.end()) *process = process_of(*process);
  if (const auto arrow = event.find("id"); arrow != event.end() && arrow->is_number_integer())
    *arrow = rank_ * arrows_of_a_rank + arrow->get<std::int64_t>();
  if (phase != "M" || !event.contains("args") || !event["args"].is_object()) return;
  auto& arguments = event["args"];
  const auto name = event.value("name", "");
  if (name == "process_name") {
    const auto before = arguments.value("name", "");
    arguments["name"] = text::concat("rank ", rank_, host_.empty() ? "" : text::concat(" (", host_, ")"), ": ", before);
  }
  if (name == "process_sort_index") arguments["sort_index"] = event["pid"];
}

std::vector<EventOut> under_way_events(int rank, const std::vector<TracedCollective>& collectives,
                                       const JoinedCollectives& joined) {
  std::vector<EventOut> events;
  const auto process = rank * processes_of_a_rank;
  for (const auto& each : collectives) {
    const auto& all = joined.at({each.group, each.sequence});
    auto facts = facts_of(each);
    facts["ranks"] = all.ranks;
    facts["entered last"] = all.last_rank;
    facts["entered before the last (us)"] = all.last_begin - each.begin;
    const auto id = text::concat(rank, '.', each.group, '.', each.sequence);
    const EventOut common = {{"cat", "collective"}, {"name", each.name}, {"id", id}, {"pid", process}, {"tid", 0}};
    auto begin = common;
    begin.update({{"ph", "b"}, {"ts", each.begin}, {"args", facts}});
    auto end = common;
    end.update({{"ph", "e"}, {"ts", each.over()}});
    events.push_back(std::move(begin));
    events.push_back(std::move(end));
  }
  return events;
}

std::vector<EventOut> device_events(int rank, const std::vector<TracedCollective>& collectives,
                                    const std::vector<TracedOperator>& operators) {
  std::vector<EventOut> events;
  std::vector<std::int64_t> threads;
  for (const auto& each : operators) {
    const auto found = std::ranges::find(threads, each.thread);
    const auto stream = found - threads.begin() + 1;
    if (found == threads.end()) threads.push_back(each.thread);
    events.push_back(kernel(rank, each.name, stream, each.time, static_cast<std::int64_t>(events.size()) + 1));
    events.push_back(launch_of(events.back(), each.thread));
  }
  for (const auto& each : collectives) {
    auto event = kernel(rank, "ncclKernel_" + each.name, collectives_stream, {.begin = each.begin, .end = each.over()},
                        static_cast<std::int64_t>(events.size()) + 1);
    event["args"].update(facts_of(each));
    auto launch = launch_of(event, 0);
    events.push_back(std::move(event));
    events.push_back(std::move(launch));
  }
  return events;
}

}  // namespace hortator::tools
