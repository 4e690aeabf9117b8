#pragma once

#include <hortator/tracker.hpp>
#include <memory>
#include <string>

#include "observe/trackers/log_file.hpp"

namespace hortator::observe {

/// Writes event files in the folder NAME. A resumed run removes later steps from the existing files and writes a new
/// file that begins with a restart event, for readers that have already seen those steps.
class TensorBoardTracker : public FileTracker {
 public:
  std::string name() const override { return "tensorboard"; }
  void store_config(const TrackerConfig& config) override;
  void log(const TrackerRecord& record) override;
  void finish() override;
  void log_text(const std::string& name, const std::string& text, std::int64_t step) override;
  void log_histogram(const std::string& name, const at::Tensor& numbers, std::int64_t step) override;
  void log_images(const std::string& name, const at::Tensor& images, std::int64_t step) override;
  void log_audio(const std::string& name, const at::Tensor& samples, int sample_rate, std::int64_t step) override;
  void log_table(const std::string& name, const TrackerTable& table, std::int64_t step) override;
  void log_figure(const std::string& name, const std::filesystem::path& png, std::int64_t step) override;

 private:
  void append(const std::string& event);
  void open();

  std::string settings_;  ///< the event with the settings, until the file is open
};

/// The name of a folder's next event file. Readers take files in the order of their names, which begin with the seconds
/// since 1970, so the new name comes after all existing ones.
std::string next_event_file(const std::filesystem::path& folder, std::int64_t now, const std::string& host);

}  // namespace hortator::observe
