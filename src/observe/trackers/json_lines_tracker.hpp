#pragma once

#include <filesystem>
#include <hortator/tracker.hpp>
#include <memory>

#include "observe/trackers/log_file.hpp"

namespace hortator::observe {

/// Writes NAME.jsonl, and the settings to NAME.config.json.
class JsonLinesTracker final : public FileTracker {
 public:
  static constexpr auto tracker_name = "jsonl";
  /// The file with the rows of a run called `name`.
  static std::filesystem::path rows_file(const std::filesystem::path& folder, const std::string& name);

  std::string name() const override { return tracker_name; }
  void store_config(const TrackerConfig& config) override;
  void log(const TrackerRecord& record) override;

 private:
  void open();
  std::filesystem::path path() const { return rows_file(start_.folder, start_.name); }
};

}  // namespace hortator::observe
