#pragma once

#include <hortator/tracker.hpp>
#include <memory>
#include <string>
#include <vector>

#include "observe/trackers/log_file.hpp"

namespace hortator::observe {

/// NAME.csv: a row a record, with the columns step, time, and one for each name. What comes with a name of its own
/// later gets a new column, for which the file is written anew.
class CsvTracker final : public Tracker {
 public:
  std::string name() const override { return "csv"; }
  void start(const TrackerStart& start) override { start_ = start; }
  void log(const TrackerRecord& record) override;
  void rewind(std::int64_t last_step) override;
  void flush() override;
  void finish() override { file_.reset(); }

 private:
  void open();
  void add_columns(const TrackerRecord& record);
  std::string row(const TrackerRecord& record) const;
  std::filesystem::path path() const { return start_.folder / (start_.name + ".csv"); }

  TrackerStart start_;
  std::vector<std::string> columns_;  ///< after step and time
  std::unique_ptr<LogFile> file_;
};

/// A cell of RFC 4180: in quotes where it must be.
std::string csv_cell(const std::string& text);

}  // namespace hortator::observe
