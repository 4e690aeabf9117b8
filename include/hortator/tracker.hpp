#pragma once

#include <ATen/core/Tensor.h>

#include <concepts>
#include <cstdint>
#include <filesystem>
#include <hortator/export.hpp>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace hortator {

/// A setting of the run: a number, true or false, or text.
class HORTATOR_API TrackerSetting {
 public:
  using Value = std::variant<bool, std::int64_t, double, std::string>;

  template <typename Number>
  requires std::is_arithmetic_v<Number> TrackerSetting(Number number) : value_(of(number)) {}
  TrackerSetting(std::string text) : value_(std::move(text)) {}
  TrackerSetting(const char* text) : value_(std::string(text)) {}

  const Value& value() const { return value_; }

 private:
  template <typename Number>
  static Value of(Number number) {
    if constexpr (std::is_same_v<Number, bool>) {
      return number;
    } else if constexpr (std::is_integral_v<Number>) {
      return static_cast<std::int64_t>(number);
    } else {
      return static_cast<double>(number);
    }
  }

  Value value_;
};

/// Hyper-parameters by their names: {{"learning_rate", 1e-3}, {"epochs", 3}}.
using TrackerConfig = std::vector<std::pair<std::string, TrackerSetting>>;

/// The run's facts that a tracker gets before its first record.
struct TrackerStart {
  std::string name = "";              ///< of the run, as given to init_trackers()
  std::filesystem::path folder = {};  ///< for files: ProjectOptions::logging_dir
  int process_index = 0;              ///< the rank that calls this tracker
  /// The run resumes after this step, the last one logged before the checkpoint. Nothing: it starts from scratch.
  std::optional<std::int64_t> last_step = {};
};

/// The numbers of one accelerator.log().
struct TrackerRecord {
  std::int64_t step = 0;
  double time = 0;  ///< seconds since 1970
  std::vector<std::pair<std::string, double>> values = {};
};

/// A table for log_table(): a name for each column, and rows of as many values.
struct TrackerTable {
  std::vector<std::string> columns = {};
  std::vector<std::vector<TrackerSetting>> rows = {};
};

/// Receives the numbers of a run, on the main process unless main_process_only() says otherwise. Your own tracker must
/// define name() and log(): `.log_with = {"tensorboard", std::make_shared<MyTracker>()}`.
class HORTATOR_API Tracker {
 public:
  Tracker() = default;
  virtual ~Tracker();
  Tracker(const Tracker&) = delete;
  Tracker& operator=(const Tracker&) = delete;

  virtual std::string name() const = 0;  ///< for get_tracker()
  virtual void log(const TrackerRecord& record) = 0;

  /// false: every process calls its own tracker, with the numbers that it logs itself. Files then need names that
  /// differ between processes: TrackerStart::folder is the same for all.
  virtual bool main_process_only() const { return true; }
  virtual void start(const TrackerStart& start);  ///< called before anything else
  virtual void store_config(const TrackerConfig& config);
  /// The run returns to a checkpoint at which `last_step` was the last step logged: remove what was logged after it.
  virtual void rewind(std::int64_t last_step);
  virtual void flush();   ///< write to disk what was logged so far: a checkpoint is being saved
  virtual void finish();  ///< called last

  /// Logs text. By default this and the functions below throw UsageError: the tracker keeps numbers only. TensorBoard
  /// keeps all but files, MLflow text, tables, plots and files.
  virtual void log_text(const std::string& name, const std::string& text, std::int64_t step);
  /// Logs the distribution of a tensor's numbers, whatever its shape.
  virtual void log_histogram(const std::string& name, const at::Tensor& numbers, std::int64_t step);
  /// Logs one image (3 or 1 x height x width) or several of one size (n x 3 or 1 x height x width), as bytes or as
  /// numbers from 0 to 1.
  virtual void log_images(const std::string& name, const at::Tensor& images, std::int64_t step);
  /// Logs sound: [frames], or [frames, channels], as numbers from -1 to 1.
  virtual void log_audio(const std::string& name, const at::Tensor& samples, int sample_rate, std::int64_t step);
  virtual void log_table(const std::string& name, const TrackerTable& table, std::int64_t step);
  /// Logs a plot that is in a PNG file.
  virtual void log_figure(const std::string& name, const std::filesystem::path& png, std::int64_t step);
  /// Keeps a copy of a file, or of a folder, under its name.
  virtual void log_artifact(const std::filesystem::path& file);

 private:
  [[noreturn]] void refuse(std::string_view what, std::string_view keeper = "tensorboard") const;
};

/// Selects one of Hortator's trackers by its name, or one of your own. Names are
/// "jsonl" (NAME.jsonl, an object a line; what `hortator watch` and `hortator plot` read), "csv" (NAME.csv),
/// "tensorboard" (event files in the folder NAME), and "all" for these three; "mlflow" (MLflow's file store); "wandb",
/// "aim", "swanlab", "dvclive" and "trackio" (files for these services, whose commands the log names at the end).
class HORTATOR_API LogWith {
 public:
  LogWith(std::string name) : chosen_(std::move(name)) {}
  LogWith(const char* name) : chosen_(std::string(name)) {}
  template <std::derived_from<Tracker> T>
  LogWith(std::shared_ptr<T> tracker) : chosen_(std::shared_ptr<Tracker>(std::move(tracker))) {}

  const std::variant<std::string, std::shared_ptr<Tracker>>& chosen() const { return chosen_; }

 private:
  std::variant<std::string, std::shared_ptr<Tracker>> chosen_;
};

}  // namespace hortator
