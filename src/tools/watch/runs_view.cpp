#include "tools/watch/runs_view.hpp"

#include <algorithm>
#include <array>
#include <map>

#include "core/text/terminal.hpp"
#include "core/text/text.hpp"
#include "observe/status/progress_text.hpp"

namespace hortator::tools {
namespace {

constexpr std::size_t column_count = 6;
using RunRow = std::array<std::string, column_count>;

std::string progress_of(const WatchFacts& facts) {
  const auto* main = main_rank(facts);
  if (main == nullptr) return "-";
  if (main->loops.empty()) return text::count(main->updates, "update");
  const auto& loop = main->loops.front();
  return loop.total >= 0 ? text::concat(loop.done, '/', loop.total) : std::to_string(loop.done);
}

std::string value_of(const WatchFacts& facts) {
  const auto values = latest_values(facts);
  if (values.empty()) return "-";
  const auto loss = std::find_if(values.begin(), values.end(), [](const auto& value) { return value.first == "loss"; });
  const auto& shown = loss != values.end() ? *loss : values.front();
  return shown.first + " " + observe::value_text(shown.second);
}

std::string arguments_of(const WatchFacts& facts) {
  std::vector<std::string> texts;
  for (const auto& [name, value] : facts.arguments) texts.push_back(name + "=" + value);
  return text::join(texts, " ");
}

RunRow row_of(const WatchFacts& facts, double now) {
  const auto* main = main_rank(facts);
  return {facts.folder,
          state_of(facts, now),
          progress_of(facts),
          value_of(facts),
          main != nullptr && main->updates_per_second > 0 ? observe::rate_text(main->updates_per_second) : "-",
          arguments_of(facts)};
}

core::Ink ink_of(const std::string& state) {
  if (state == "failed" || state == "killed" || state == "silent") return core::Ink::bad;
  if (state == "finished" || state == "over" || state == "running") return core::Ink::good;
  return core::Ink::warning;
}

// "2 finished, 1 running"
std::string summary(const std::vector<WatchFacts>& runs, double now) {
  std::map<std::string, int> counts;
  for (const auto& run : runs) ++counts[state_of(run, now)];
  std::vector<std::string> parts;
  for (const auto& [state, count] : counts) parts.push_back(text::concat(count, ' ', state));
  return text::count(static_cast<long long>(runs.size()), "run") + ": " + text::join(parts);
}

void put_row(core::Page& page, const RunRow& row, const std::array<int, column_count>& widths, bool is_heading) {
  for (std::size_t i = 0; i < row.size(); ++i) {
    const auto ink = is_heading ? core::Ink::faint : i == 1 ? ink_of(row[i]) : core::Ink::plain;
    const bool is_last = i + 1 == row.size();
    const auto gap = is_last ? 0 : widths[i] + 2 - core::width_of(row[i]);
    page.add(row[i] + std::string(static_cast<std::size_t>(gap), ' '), ink);
  }
  page.end_line();
}

}  // namespace

std::string runs_view(const std::vector<WatchFacts>& runs, const ViewOptions& options) {
  std::vector<RunRow> rows = {{"run", "state", "progress", "value", "rate", "arguments"}};
  for (const auto& run : runs) rows.push_back(row_of(run, options.now));
  std::array<int, column_count> widths{};
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], core::width_of(row[i]));
  }
  core::Page page(options.columns, options.colour);
  page.add(summary(runs, options.now), core::Ink::bold);
  page.end_line();
  for (std::size_t number = 0; number < rows.size(); ++number) {
    put_row(page, rows[number], widths, /*is_heading=*/number == 0);
    if (number > 0 && runs[number - 1].failure) page.long_row("", *runs[number - 1].failure, core::Ink::bad);
  }
  return std::move(page).text();
}

}  // namespace hortator::tools
