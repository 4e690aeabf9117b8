#include "observe/trackers/csv_tracker.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <hortator/error.hpp>
#include <sstream>

#include "core/text/csv.hpp"
#include "core/text/text.hpp"
#include "core/whole_file.hpp"
#include "observe/trackers/json_row.hpp"
#include "observe/trackers/log_file.hpp"

namespace hortator::observe {
namespace {

std::optional<std::int64_t> step_of_row(std::string_view row) {
  std::int64_t step = 0;
  const auto [end, error] = std::from_chars(row.data(), row.data() + row.size(), step);
  return error == std::errc() && end != row.data() + row.size() && *end == ',' ? std::optional(step) : std::nullopt;
}

// A name without line breaks: rows are found by their line ends.
std::string column_name(std::string name) {
  std::ranges::replace_if(
      name, [](char c) { return c == '\n' || c == '\r'; }, ' ');
  return name;
}

std::string heading(const std::vector<std::string>& columns) {
  std::string row = "step,time";
  for (const auto& name : columns) row.append(",").append(csv_cell(name));
  return row;
}

}  // namespace

std::string csv_cell(const std::string& text) {
  if (text.find_first_of(",\"") == std::string::npos) return text;
  std::string cell = "\"";
  for (const char c : text) cell.append(c == '"' ? 2 : 1, c);
  return cell + '"';
}

void CsvTracker::open() {
  columns_.clear();
  if (start_.last_step) {
    cut_rows(path(), FirstRow::heading, step_of_row, *start_.last_step);
    const auto content = content_of(path());
    if (const auto first = content.substr(0, content.find('\n')); !first.empty())
      columns_ = core::parse_csv_record(first);
    columns_.erase(columns_.begin(), columns_.begin() + std::min<std::ptrdiff_t>(std::ssize(columns_), 2));
  } else {
    put_aside(path());
  }
}

void CsvTracker::add_columns(const TrackerRecord& record) {
  const auto before = columns_.size();
  for (const auto& [name, value] : record.values) {
    const auto column = column_name(name);
    if (std::ranges::find(columns_, column) == columns_.end()) columns_.push_back(column);
  }
  if (file_ && columns_.size() == before) return;
  file_.reset();
  if (columns_.size() != before || !std::filesystem::exists(path())) {
    std::string content = heading(columns_);
    std::istringstream in(content_of(path()));
    std::string row;
    std::getline(in, row);
    // Earlier rows get empty cells for the new columns.
    while (std::getline(in, row)) content.append("\n").append(row).append(columns_.size() - before, ',');
    if (!core::write_whole(path(), path().string() + ".new", content + '\n')) {
      throw Error({.what = "Cannot write " + path().string(),
                   .why = "the tracker records the run there",
                   .hint = "make room or choose another project.logging_dir"});
    }
  }
  file_ = std::make_unique<LogFile>(path());
}

std::string CsvTracker::row(const TrackerRecord& record) const {
  std::vector<std::string> cells(columns_.size());
  for (const auto& [name, value] : record.values) {
    const auto column = std::ranges::find(columns_, column_name(name)) - columns_.begin();
    cells[static_cast<std::size_t>(column)] = number_text(value);
  }
  std::array<char, 32> time{};
  std::snprintf(time.data(), time.size(), "%.3f", record.time);
  cells.insert(cells.begin(), {std::to_string(record.step), time.data()});
  return text::join(cells, ",") + "\n";
}

void CsvTracker::log(const TrackerRecord& record) {
  if (!file_) open();
  add_columns(record);
  file_->append(row(record));
}

}  // namespace hortator::observe
