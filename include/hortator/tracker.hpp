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

/// A setting of the run: a number of any kind, true or false, a text.
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

/// What a tracker is told of the run before it is given its first record.
struct TrackerStart {
  std::string name = "";              ///< of the run, as init_trackers() was told
  std::filesystem::path folder = {};  ///< for files: ProjectOptions::logging_dir
  /// The run goes on after this step, which an earlier one logged last before it saved. Nothing: it begins anew.
  std::optional<std::int64_t> last_step = {};
};

/// What one accelerator.log() says.
struct TrackerRecord {
  std::int64_t step = 0;
  double time = 0;  ///< seconds since 1970
  std::vector<std::pair<std::string, double>> values = {};
};

/// Where the numbers of a run go. Only the main process has any: on the others nothing is called. Names and log() are
/// all that an own one must have: `.log_with = {"tensorboard", std::make_shared<MyTracker>()}`.
class HORTATOR_API Tracker {
 public:
  Tracker() = default;
  virtual ~Tracker();
  Tracker(const Tracker&) = delete;
  Tracker& operator=(const Tracker&) = delete;

  virtual std::string name() const = 0;  ///< for get_tracker()
  virtual void log(const TrackerRecord& record) = 0;

  virtual void start(const TrackerStart& start);  ///< before anything else
  virtual void store_config(const TrackerConfig& config);
  /// The run goes back to where `last_step` was the last one logged: what came after it is no part of it any more.
  virtual void rewind(std::int64_t last_step);
  virtual void flush();   ///< what was logged so far must outlive the process: a checkpoint is being saved
  virtual void finish();  ///< nothing comes after this

  /// More than numbers. Unless a tracker can keep it, a UsageError.
  virtual void log_text(const std::string& name, const std::string& text, std::int64_t step);
  /// How the numbers of a tensor of any shape are distributed.
  virtual void log_histogram(const std::string& name, const at::Tensor& numbers, std::int64_t step);
  /// One image (3 or 1 x height x width) or several of a size (n x 3 or 1 x height x width): bytes, or numbers from 0
  /// to 1.
  virtual void log_images(const std::string& name, const at::Tensor& images, std::int64_t step);

 private:
  [[noreturn]] void refuse(std::string_view what) const;
};

/// A tracker of Hortator's by its name, or one of the user's own. Names are
/// "jsonl" (NAME.jsonl, an object a line; what `hortator watch` and `hortator plot` read), "csv" (NAME.csv),
/// "tensorboard" (event files in the folder NAME), and "all" for these three.
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
