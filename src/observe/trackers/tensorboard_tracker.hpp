#pragma once

#include <hortator/tracker.hpp>
#include <memory>
#include <string>

#include "observe/trackers/log_file.hpp"

namespace hortator::observe {

/// Event files in the folder NAME. A run that goes on takes later steps out of those that are there, and writes a new
/// one, which begins with word of it for readers that have seen them.
class TensorBoardTracker final : public Tracker {
 public:
  std::string name() const override { return "tensorboard"; }
  void start(const TrackerStart& start) override { start_ = start; }
  void store_config(const TrackerConfig& config) override;
  void log(const TrackerRecord& record) override;
  void rewind(std::int64_t last_step) override;
  void flush() override;
  void finish() override;
  void log_text(const std::string& name, const std::string& text, std::int64_t step) override;
  void log_histogram(const std::string& name, const at::Tensor& numbers, std::int64_t step) override;
  void log_images(const std::string& name, const at::Tensor& images, std::int64_t step) override;

 private:
  void append(const std::string& event);
  void open();

  TrackerStart start_;
  std::string settings_;  ///< an event that waits for the file
  std::unique_ptr<LogFile> file_;
};

/// The name of a folder's next event file: readers take them in the order of their names, which begin with seconds
/// since 1970.
std::string next_event_file(const std::filesystem::path& folder, std::int64_t now, const std::string& host);

}  // namespace hortator::observe
