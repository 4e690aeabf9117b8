#include "tools/trace/trace_times.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>

#include "core/text/terminal.hpp"
#include "core/text/text.hpp"
#include "core/text/units.hpp"

namespace hortator::tools {
namespace {

using OperatorJson = nlohmann::ordered_json;
using Row = std::vector<std::string>;

std::string_view word_of(const OperatorJson& event, const char* name) {
  const auto found = event.find(name);
  return found != event.end() && found->is_string() ? std::string_view(found->get_ref<const std::string&>())
                                                    : std::string_view();
}

bool is_communication(std::string_view kernel) { return kernel.starts_with("nccl"); }

std::string milliseconds(double microseconds) { return text::print("%.2f ms", microseconds / 1000); }

std::string share(double part, double whole) { return whole > 0 ? text::print("%.0f %%", 100 * part / whole) : ""; }

std::string aligned(const std::vector<Row>& rows) {
  std::vector<int> widths(rows.front().size(), 0);
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], core::width_of(row[i]));
  }
  std::string table;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      line += row[i];
      line.append(static_cast<std::size_t>(widths[i] - core::width_of(row[i])) + 2, ' ');
    }
    table += line.substr(0, line.find_last_not_of(' ') + 1) + '\n';
  }
  return table;
}

}  // namespace

std::vector<TimeRange> united(std::vector<TimeRange> ranges) {
  std::ranges::sort(ranges, {}, &TimeRange::begin);
  std::vector<TimeRange> joined;
  for (const auto& range : ranges) {
    if (range.end <= range.begin) continue;
    if (!joined.empty() && range.begin <= joined.back().end) {
      joined.back().end = std::max(joined.back().end, range.end);
    } else {
      joined.push_back(range);
    }
  }
  return joined;
}

double length_of(const std::vector<TimeRange>& united) {
  double length = 0;
  for (const auto& range : united) length += range.end - range.begin;
  return length;
}

double common_length(const std::vector<TimeRange>& one, const std::vector<TimeRange>& other) {
  double length = 0;
  for (std::size_t i = 0, j = 0; i < one.size() && j < other.size();) {
    length += std::max(0.0, std::min(one[i].end, other[j].end) - std::max(one[i].begin, other[j].begin));
    one[i].end < other[j].end ? ++i : ++j;
  }
  return length;
}

void OperatorReader::take(const OperatorJson& event) {
  if (word_of(event, "ph") != "X") return;
  const auto name = word_of(event, "name");
  const auto category = word_of(event, "cat");
  const double begin = event.value("ts", 0.0);
  const TimeRange time{.begin = begin, .end = begin + event.value("dur", 0.0)};
  if (category == "kernel" && !is_communication(name)) kernels_.push_back(time);
  if (category == "user_annotation" && name.starts_with("ProfilerStep#")) ++steps_;
  if (category != "cpu_op") return;
  const auto thread = event.find("tid");
  const bool is_number = thread != event.end() && thread->is_number();
  all_.push_back({.name = std::string(name), .thread = is_number ? thread->get<std::int64_t>() : 0, .time = time});
}

std::vector<TracedOperator> OperatorReader::operators() const {
  auto sorted = all_;
  std::ranges::sort(sorted, [](const TracedOperator& a, const TracedOperator& b) {
    if (a.thread != b.thread) return a.thread < b.thread;
    return a.time.begin != b.time.begin ? a.time.begin < b.time.begin : a.time.end > b.time.end;
  });
  std::vector<TracedOperator> outermost;
  for (auto& each : sorted) {
    const bool is_within =
        !outermost.empty() && outermost.back().thread == each.thread && each.time.begin < outermost.back().time.end;
    if (!is_within) outermost.push_back(std::move(each));
  }
  return outermost;
}

RankTimes times_of(const std::vector<TracedCollective>& collectives, const OperatorReader& operators,
                   const JoinedCollectives& joined, int rank, double shift) {
  RankTimes times{.rank = rank, .steps = operators.steps(), .collectives = collectives.size()};
  std::vector<TimeRange> under_way;
  std::vector<TimeRange> waits;
  for (const auto& each : collectives) {
    times.bytes += each.bytes;
    under_way.push_back({.begin = each.begin, .end = each.over()});
    const auto& all = joined.at({each.group, each.sequence});
    const double entered = each.wait_begin >= 0 ? each.wait_begin : each.begin;
    waits.push_back({.begin = entered, .end = std::min(all.last_begin, each.over())});
    if (all.ranks.size() > 1 && all.last_rank == rank) ++times.last;
  }
  std::vector<TimeRange> computed = operators.kernels();
  if (!operators.has_kernels()) {
    for (const auto& each : operators.operators()) computed.push_back(each.time);
  }
  for (auto& range : computed) range = {.begin = range.begin + shift, .end = range.end + shift};
  const auto computing = united(std::move(computed));
  const auto communicating = united(std::move(under_way));
  times.computing = length_of(computing);
  times.communicating = length_of(communicating);
  times.overlapping = common_length(computing, communicating);
  times.waiting = length_of(united(std::move(waits)));
  return times;
}

std::string times_table(const std::vector<RankTimes>& ranks) {
  std::vector<Row> rows = {{"rank", "host", "steps", "computing", "collectives", "bytes", "under way", "overlapped",
                            "waiting for others", "entered last"}};
  for (const auto& each : ranks) {
    rows.push_back({std::to_string(each.rank), each.host, each.steps > 0 ? std::to_string(each.steps) : "",
                    milliseconds(each.computing), std::to_string(each.collectives),
                    units::bytes(static_cast<std::uint64_t>(each.bytes)), milliseconds(each.communicating),
                    share(each.overlapping, each.communicating), milliseconds(each.waiting),
                    std::to_string(each.last)});
  }
  return aligned(rows);
}

}  // namespace hortator::tools
