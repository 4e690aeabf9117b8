#pragma once

#include <hortator/tracker.hpp>
#include <memory>
#include <string>
#include <vector>

#include "observe/trackers/log_file.hpp"

namespace hortator::observe {

/// Writes NAME.csv: a row per record, with the columns step, time and one for each name. A name that appears later gets
/// a new column, for which the file is rewritten.
class CsvTracker : public FileTracker {
 public:
  std::string name() const override { return "csv"; }
  void log(const TrackerRecord& record) override;

 private:
  void open();
  void add_columns(const TrackerRecord& record);
  std::string row(const TrackerRecord& record) const;
  std::filesystem::path path() const { return start_.folder / (start_.name + ".csv"); }

  std::vector<std::string> columns_;  ///< after step and time
};

/// A cell as in RFC 4180, quoted only if necessary.
std::string csv_cell(const std::string& text);

}  // namespace hortator::observe
