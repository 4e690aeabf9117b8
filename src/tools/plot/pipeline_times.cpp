#include "tools/plot/pipeline_times.hpp"

#include <algorithm>
#include <hortator/error.hpp>
#include <optional>
#include <string>

#include "core/text/json.hpp"
#include "core/text/text.hpp"
#include "core/whole_file.hpp"

namespace hortator::tools {
namespace {

constexpr double bar_width = 14;

struct TimeRow {
  std::string times, action;
  double rank = 0, begin = 0, end = 0;
};

std::optional<TimeRow> parse_row(std::string_view line) {
  const auto json = core::parse_record<nlohmann::ordered_json>(line);
  if (!json.is_object()) return {};
  TimeRow row;
  try {
    json.at("times").get_to(row.times);
    json.at("action").get_to(row.action);
    json.at("rank").get_to(row.rank);
    json.at("begin").get_to(row.begin);
    json.at("end").get_to(row.end);
  } catch (const nlohmann::ordered_json::exception&) {
    return {};
  }
  return row;
}

std::vector<TimeRow> rows_in(const std::filesystem::path& file) {
  std::vector<TimeRow> rows;
  const auto content = core::read_whole(file);
  for (const auto& line : text::split(content.value_or(""), '\n')) {
    if (line.empty()) continue;
    const auto row = parse_row(line);
    if (row) rows.push_back(*row);
    if (!row) break;
  }
  if (!rows.empty()) return rows;
  throw UsageError({.what = text::concat(text::quote(file.string()), " is a file, and has no times of a pipeline"),
                    .hint = "give a run's folder, or a file that PipelineStepOptions::times has named"});
}

/// A bar for each action, with the share of all ranks' time in which they waited.
Panel panel_of(const std::vector<TimeRow>& rows, const std::string& times) {
  Panel panel{.x_label = "ms", .y_label = "rank"};
  double busy = 0, length = 0, ranks = 0;
  for (const auto& row : rows) {
    if (row.times != times) continue;
    busy += row.end - row.begin;
    length = std::max(length, row.end);
    ranks = std::max(ranks, row.rank + 1);
    panel.series.push_back(
        {.label = row.action, .x = {1e3 * row.begin, 1e3 * row.end}, .y = {row.rank, row.rank}, .width = bar_width});
  }
  panel.y_ticks = std::max(1, static_cast<int>(ranks) - 1);
  const auto idle = length > 0 ? 100 * (1 - busy / (length * ranks)) : 0;
  panel.title =
      text::concat(times, ": ", text::print("%.1f", 1e3 * length), " ms, ", text::print("%.1f", idle), " % idle");
  return panel;
}

}  // namespace

std::vector<Panel> panels_of_times(const std::filesystem::path& file) {
  const auto rows = rows_in(file);
  return {panel_of(rows, "planned"), panel_of(rows, "measured")};
}

}  // namespace hortator::tools
