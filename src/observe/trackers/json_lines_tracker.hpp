#pragma once

#include <hortator/tracker.hpp>
#include <memory>

#include "observe/trackers/log_file.hpp"

namespace hortator::observe {

/// NAME.jsonl, and the settings in NAME.config.json. Nothing is touched before there is something to write: until then
/// the run may still learn that it goes on from a checkpoint.
class JsonLinesTracker final : public Tracker {
 public:
  std::string name() const override { return "jsonl"; }
  void start(const TrackerStart& start) override { start_ = start; }
  void store_config(const TrackerConfig& config) override;
  void log(const TrackerRecord& record) override;
  void rewind(std::int64_t last_step) override;
  void flush() override;
  void finish() override;

 private:
  void open();
  std::filesystem::path path() const;

  TrackerStart start_;
  std::unique_ptr<LogFile> file_;
};

}  // namespace hortator::observe
