#include "observe/trackers/trackers.hpp"

#include <algorithm>
#include <chrono>
#include <exception>
#include <hortator/error.hpp>

#include "core/log.hpp"
#include "core/text/text.hpp"
#include "core/time.hpp"
#include "observe/trackers/json_lines_tracker.hpp"
#include "observe/trackers/tracker_factory.hpp"

namespace hortator::observe {
namespace {

/// What get() returns on processes that do not call a tracker, so that the program is the same everywhere.
class SilentTracker final : public Tracker {
 public:
  std::string name() const override { return "none"; }
  void log(const TrackerRecord& /*record*/) override {}
  void log_text(const std::string& /*name*/, const std::string& /*text*/, std::int64_t /*step*/) override {}
  void log_histogram(const std::string& /*name*/, const at::Tensor& /*numbers*/, std::int64_t /*step*/) override {}
  void log_images(const std::string& /*name*/, const at::Tensor& /*images*/, std::int64_t /*step*/) override {}
  void log_audio(const std::string& /*name*/, const at::Tensor& /*samples*/, int /*sample_rate*/,
                 std::int64_t /*step*/) override {}
  void log_table(const std::string& /*name*/, const TrackerTable& /*table*/, std::int64_t /*step*/) override {}
  void log_figure(const std::string& /*name*/, const std::filesystem::path& /*png*/, std::int64_t /*step*/) override {}
  void log_artifact(const std::filesystem::path& /*file*/) override {}
};

}  // namespace

Trackers::Trackers(const std::vector<LogWith>& chosen, int process, std::filesystem::path folder)
    : process_(process), folder_(std::move(folder)), exceptions_(std::uncaught_exceptions()) {
  for (auto& tracker : make_trackers(chosen)) {
    names_.push_back(tracker->name());
    if (process_ == main_process || !tracker->main_process_only()) trackers_.push_back(std::move(tracker));
  }
}

// During stack unwinding a device may wait for ranks that have ended, so its values are not read.
Trackers::~Trackers() {
  if (late_ && !late_->is_on_host() && std::uncaught_exceptions() > exceptions_) late_.reset();
  try {
    finish();
  } catch (const std::exception& error) {
    log::warn("The last numbers were not recorded: ", error.what());
  }
}

void Trackers::start(const std::string& name, const TrackerConfig& config) {
  if (!name_.empty()) {
    throw UsageError(
        {.what = text::concat("init_trackers(", text::quote(name), ") was called after the trackers have started"),
         .why = "a run has one name for all its records",
         .hint = "call it once, before the first log()"});
  }
  if (name.empty() || name == "." || name == ".." || name.find('/') != std::string::npos) {
    throw UsageError({.what = "init_trackers: expected a name without '/', got the name " + text::quote(name),
                      .why = "files and a folder get this name",
                      .hint = "use letters, digits and dashes"});
  }
  if (!trackers_.empty()) std::filesystem::create_directories(folder_);
  each([&](Tracker& tracker) {
    tracker.start({.name = name, .folder = folder_, .process_index = process_, .last_step = resumed_after_});
    tracker.store_config(config);
  });
  name_ = name;
}

void Trackers::start_if_needed() {
  if (!name_.empty()) return;
  try {
    start("metrics", {});
  } catch (const std::filesystem::filesystem_error& error) {
    log::warn("Nothing that is logged will be recorded: ", error.what());
    trackers_.clear();
  }
}

void Trackers::log(const NamedValues& values, std::optional<std::int64_t> step) {
  if (step && *step < 0) {
    throw UsageError({.what = text::concat("log(): expected a step from 0, got the step ", *step)});
  }
  last_step_ = step.value_or(last_step_ + 1);
  if (trackers_.empty()) return;
  start_if_needed();
  write_late();
  late_.emplace(last_step_, core::unix_time(), values);
  if (late_->is_on_host()) write_late();
}

void Trackers::write_late() {
  if (!late_) return;
  const auto record = late_->read();
  late_.reset();
  for (const auto& [name, value] : record.values) {
    const auto known = std::ranges::find_if(latest_, [&](const auto& one) { return one.first == name; });
    if (known != latest_.end()) {
      known->second = value;
    } else {
      latest_.emplace_back(name, value);
    }
  }
  each([&](Tracker& tracker) { tracker.log(record); });
}

// A tracker that can no longer write is removed with a warning: the run is worth more than its records.
template <typename Work>
void Trackers::each(const Work& work) {
  const auto remove = [&](std::size_t i, const std::exception& error) {
    log::warn("The tracker ", text::quote(trackers_[i]->name()), " records nothing from now on: ", error.what());
    trackers_.erase(trackers_.begin() + static_cast<std::ptrdiff_t>(i));
  };
  for (std::size_t i = 0; i < trackers_.size();) {
    try {
      work(*trackers_[i]);
      ++i;
    } catch (const UsageError&) {
      throw;
    } catch (const Error& error) {
      remove(i, error);
    } catch (const std::filesystem::filesystem_error& error) {
      remove(i, error);
    }
  }
}

Tracker& Trackers::get(const std::string& name) {
  static SilentTracker silent;
  if (std::ranges::find(names_, name) == names_.end()) {
    throw UsageError(
        {.what = "get_tracker: log_with has no tracker " + text::quote(name),
         .hint = names_.empty() ? "name it in AcceleratorOptions::log_with" : text::suggestion(name, names_)});
  }
  if (!trackers_.empty()) start_if_needed();
  for (const auto& tracker : trackers_) {
    if (tracker->name() == name) return *tracker;
  }
  return silent;  // it is the main process's, or it could not write any more and was removed with a warning
}

void Trackers::flush() {
  write_late();
  if (!name_.empty()) each([](Tracker& tracker) { tracker.flush(); });
}

void Trackers::finish() {
  write_late();
  if (!name_.empty()) each([](Tracker& tracker) { tracker.finish(); });
  trackers_.clear();
}

void Trackers::resume_after(std::int64_t last_step) {
  late_.reset();
  last_step_ = last_step;
  resumed_after_ = last_step;
  if (!name_.empty()) each([&](Tracker& tracker) { tracker.rewind(last_step); });
}

std::filesystem::path Trackers::rows() const {
  const bool is_chosen = std::ranges::find(names_, JsonLinesTracker::tracker_name) != names_.end();
  return is_chosen && !name_.empty() ? JsonLinesTracker::rows_file(folder_, name_) : std::filesystem::path();
}

}  // namespace hortator::observe
