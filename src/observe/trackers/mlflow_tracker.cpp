#include "observe/trackers/mlflow_tracker.hpp"

#include <pwd.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <hortator/error.hpp>
#include <random>
#include <type_traits>
#include <variant>

#include "core/text/text.hpp"
#include "core/time.hpp"
#include "core/whole_file.hpp"
#include "observe/trackers/json_row.hpp"
#include "observe/trackers/media.hpp"

namespace hortator::observe {
namespace {

namespace fs = std::filesystem;

std::int64_t milliseconds() { return static_cast<std::int64_t>(core::unix_time() * 1000); }

std::string user_name() {
  const auto* entry = getpwuid(geteuid());
  return entry != nullptr ? entry->pw_name : std::to_string(geteuid());
}

// From the system's random numbers: the run's own belong to its training.
std::string random_id() {
  std::random_device device;
  std::string id;
  for (int i = 0; i < 4; ++i) {
    std::array<char, 9> digits{};
    std::snprintf(digits.data(), digits.size(), "%08x", device());
    id += digits.data();
  }
  return id;
}

void write_store_file(const fs::path& file, const std::string& content) {
  if (core::write_whole(file, file.string() + ".new", content)) return;
  throw Error({.what = "Cannot write " + file.string(),
               .why = "the tracker records the run there",
               .hint = "make room or choose another project.logging_dir"});
}

// As Python prints it.
std::string param_text(const TrackerSetting& setting) {
  return std::visit(
      [](const auto& value) -> std::string {
        using Value = std::remove_cvref_t<decltype(value)>;
        if constexpr (std::is_same_v<Value, bool>) {
          return value ? "True" : "False";
        } else if constexpr (std::is_same_v<Value, double>) {
          return number_text(value);
        } else if constexpr (std::is_same_v<Value, std::string>) {
          return value;
        } else {
          return std::to_string(value);
        }
      },
      setting.value());
}

}  // namespace

fs::path MlflowTracker::experiment() const {
  const auto store = settings_.store.value_or(start_.folder / "mlruns");
  return fs::absolute(store) / mlflow_experiment_id(experiment_name());
}

std::optional<MlflowRun> MlflowTracker::continued_run() const {
  if (settings_.run_id) return mlflow_run_in(experiment() / *settings_.run_id);
  return start_.last_step ? newest_mlflow_run(experiment()) : std::nullopt;
}

MlflowRun MlflowTracker::new_run() const {
  const auto id = settings_.run_id.value_or(random_id());
  return {.experiment = mlflow_experiment_id(experiment_name()),
          .id = id,
          .name = settings_.run_name.value_or(text::concat(start_.name, "-", id.substr(0, 6))),
          .user = user_name(),
          .folder = experiment() / id,
          .started = milliseconds()};
}

void MlflowTracker::open() {
  if (run_) return;
  const auto meta = experiment() / "meta.yaml";
  if (!fs::exists(meta)) {
    fs::create_directories(experiment());
    write_store_file(meta, mlflow_experiment_meta(mlflow_experiment_id(experiment_name()), experiment_name(),
                                                  experiment(), milliseconds()));
  }
  auto run = continued_run();
  const bool resumes = run.has_value();
  if (!run) run = new_run();
  for (const auto* folder : {"metrics", "params", "tags", "artifacts"}) fs::create_directories(run->folder / folder);
  write_store_file(run->folder / "meta.yaml", mlflow_run_meta(*run));
  run_ = std::move(run);
  if (resumes && start_.last_step) cut_metrics(*start_.last_step);
  write_params();
}

// Parameters of a run do not change: a resumed run keeps those that it has.
void MlflowTracker::write_params() const {
  for (const auto& [name, setting] : config_) {
    const auto file = run_->folder / "params" / mlflow_name(name);
    fs::create_directories(file.parent_path());
    if (!fs::exists(file)) write_store_file(file, param_text(setting));
  }
  for (const auto& [name, value] : settings_.tags) {
    const auto file = run_->folder / "tags" / mlflow_name(name);
    fs::create_directories(file.parent_path());
    write_store_file(file, value);
  }
  write_store_file(run_->folder / "tags" / "mlflow.runName", run_->name);
  write_store_file(run_->folder / "tags" / "mlflow.user", run_->user);
  write_store_file(run_->folder / "tags" / "mlflow.source.type", "LOCAL");
}

void MlflowTracker::cut_metrics(std::int64_t last_step) const {
  for (const auto& entry : fs::recursive_directory_iterator(run_->folder / "metrics")) {
    if (entry.is_regular_file()) cut_rows(entry.path(), FirstRow::data, step_of_mlflow_row, last_step);
  }
}

LogFile& MlflowTracker::metric(const std::string& name) {
  const auto file = mlflow_name(name);
  require_own_file(name, file);
  auto& metric = metrics_[file];
  if (!metric.file) metric = {.name = name, .file = std::make_unique<LogFile>(run_->folder / "metrics" / file)};
  return *metric.file;
}

void MlflowTracker::require_own_file(const std::string& name, const std::string& file) {
  const auto known = metrics_.find(file);
  if (known != metrics_.end() && known->second.name == name) return;
  for (const auto& [other, metric] : metrics_) {
    if (!share_mlflow_path(file, other)) continue;
    throw UsageError({.what = text::concat("The metrics ", text::quote(metric.name), " and ", text::quote(name),
                                           " cannot both be logged to MLflow"),
                      .why = "its store keeps a metric in a file of its name, and slashes in names are folders",
                      .hint = "rename one of them"});
  }
}

void MlflowTracker::log(const TrackerRecord& record) {
  open();
  for (const auto& [name, value] : record.values)
    metric(name).append(mlflow_metric_row(record.time, value, record.step));
}

void MlflowTracker::write_artifact(const std::string& name, std::int64_t step, const char* ending,
                                   const std::string& content) {
  open();
  const auto file = run_->folder / "artifacts" / mlflow_name(name) / text::concat("step-", step, ending);
  fs::create_directories(file.parent_path());
  write_store_file(file, content);
}

void MlflowTracker::log_text(const std::string& name, const std::string& text, std::int64_t step) {
  write_artifact(name, step, ".txt", text);
}

void MlflowTracker::log_table(const std::string& name, const TrackerTable& table, std::int64_t step) {
  write_artifact(name, step, ".json", table_json(table));
}

void MlflowTracker::log_figure(const std::string& name, const fs::path& png, std::int64_t step) {
  const auto content = core::read_whole(png).value_or("");
  static_cast<void>(png_size(content, png.string()));
  write_artifact(name, step, ".png", content);
}

// Copied beside its name and renamed, so that readers find whole files only. A folder is replaced.
void MlflowTracker::log_artifact(const fs::path& file) {
  const auto named = file.has_filename() ? file : file.parent_path();
  if (!fs::exists(named)) {
    throw UsageError({.what = text::concat("log_artifact: there is no ", named),
                      .why = "a copy of it would be kept with the run",
                      .hint = "write it first; relative paths begin in the working directory"});
  }
  open();
  const auto target = run_->folder / "artifacts" / named.filename();
  const fs::path aside = target.string() + ".new";
  fs::remove_all(aside);
  fs::copy(named, aside, fs::copy_options::recursive);
  if (fs::is_directory(target)) fs::remove_all(target);
  fs::rename(aside, target);
}

void MlflowTracker::rewind(std::int64_t last_step) {
  start_.last_step = last_step;
  metrics_.clear();
  if (run_) cut_metrics(last_step);
}

void MlflowTracker::flush() {
  for (const auto& [file, metric] : metrics_) metric.file->make_durable();
}

void MlflowTracker::finish() {
  metrics_.clear();
  if (!run_) return;
  run_->ended = milliseconds();
  write_store_file(run_->folder / "meta.yaml", mlflow_run_meta(*run_));
  run_.reset();
}

}  // namespace hortator::observe
