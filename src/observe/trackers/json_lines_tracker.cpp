#include "observe/trackers/json_lines_tracker.hpp"

#include <hortator/error.hpp>

#include "core/whole_file.hpp"
#include "observe/trackers/json_row.hpp"
#include "observe/trackers/log_file.hpp"

namespace hortator::observe {

std::filesystem::path JsonLinesTracker::rows_file(const std::filesystem::path& folder, const std::string& name) {
  return folder / (name + ".jsonl");
}

void JsonLinesTracker::store_config(const TrackerConfig& config) {
  const auto file = start_.folder / (start_.name + ".config.json");
  if (!core::write_whole(file, file.string() + ".new", json_config(config) + '\n'))
    throw Error({.what = "Cannot write " + file.string(), .hint = "choose another project.logging_dir"});
}

void JsonLinesTracker::open() {
  if (start_.last_step) {
    cut_rows(path(), FirstRow::data, step_of_json_row, *start_.last_step);
  } else {
    put_aside(path());
  }
  file_ = std::make_unique<LogFile>(path());
}

void JsonLinesTracker::log(const TrackerRecord& record) {
  if (!file_) open();
  file_->append(json_row(record));
}

}  // namespace hortator::observe
