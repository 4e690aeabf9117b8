#pragma once

#include <hortator/tracker.hpp>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "observe/trackers/log_file.hpp"
#include "observe/trackers/mlflow_settings.hpp"
#include "observe/trackers/mlflow_store.hpp"

namespace hortator::observe {

/// Writes the folder mlruns of MLflow's file store: the run's name is the experiment, and each run that starts from
/// scratch is a new run of it. A resumed one continues the newest. MLflow's environment variables change these. Files
/// are written from the first record on.
class MlflowTracker final : public Tracker {
 public:
  /// Throws UsageError for variables that cannot be followed.
  explicit MlflowTracker(const core::Variables& variables = core::process_variables())
      : settings_(mlflow_settings(variables)) {}

  std::string name() const override { return "mlflow"; }
  void start(const TrackerStart& start) override { start_ = start; }
  void store_config(const TrackerConfig& config) override { config_ = config; }
  void log(const TrackerRecord& record) override;
  void rewind(std::int64_t last_step) override;
  void flush() override;
  void finish() override;
  void log_text(const std::string& name, const std::string& text, std::int64_t step) override;
  void log_table(const std::string& name, const TrackerTable& table, std::int64_t step) override;
  void log_figure(const std::string& name, const std::filesystem::path& png, std::int64_t step) override;
  void log_artifact(const std::filesystem::path& file) override;

 private:
  void open();
  std::string experiment_name() const { return settings_.experiment.value_or(start_.name); }
  std::filesystem::path experiment() const;
  std::optional<MlflowRun> continued_run() const;
  MlflowRun new_run() const;
  void write_params() const;
  void write_artifact(const std::string& name, std::int64_t step, const char* ending, const std::string& content);
  void cut_metrics(std::int64_t last_step) const;
  LogFile& metric(const std::string& name);
  void require_own_file(const std::string& name, const std::string& file);

  MlflowSettings settings_;
  TrackerStart start_;
  TrackerConfig config_;
  std::optional<MlflowRun> run_;  ///< nothing until the first record
  struct Metric {
    std::string name;  ///< as it was logged first
    std::unique_ptr<LogFile> file;
  };
  std::map<std::string, Metric> metrics_;  ///< by their files
};

}  // namespace hortator::observe
