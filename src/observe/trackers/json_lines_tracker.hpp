#pragma once

#include <filesystem>
#include <hortator/tracker.hpp>
#include <memory>

#include "observe/trackers/log_file.hpp"

namespace hortator::observe {

/// Writes NAME.jsonl, and the settings to NAME.config.json. The file is opened only at the first record: until then the
/// run may still resume from a checkpoint.
class JsonLinesTracker final : public Tracker {
 public:
  static constexpr auto tracker_name = "jsonl";
  /// The file with the rows of a run called `name`.
  static std::filesystem::path rows_file(const std::filesystem::path& folder, const std::string& name);

  std::string name() const override { return tracker_name; }
  void start(const TrackerStart& start) override { start_ = start; }
  void store_config(const TrackerConfig& config) override;
  void log(const TrackerRecord& record) override;
  void rewind(std::int64_t last_step) override;
  void flush() override;
  void finish() override;

 private:
  void open();
  std::filesystem::path path() const { return rows_file(start_.folder, start_.name); }

  TrackerStart start_;
  std::unique_ptr<LogFile> file_;
};

}  // namespace hortator::observe
