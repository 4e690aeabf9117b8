#include "observe/trackers/tracker_factory.hpp"

#include <algorithm>
#include <hortator/error.hpp>
#include <hortator/tracker.hpp>
#include <set>

#include "core/text/text.hpp"
#include "observe/trackers/csv_tracker.hpp"
#include "observe/trackers/json_lines_tracker.hpp"
#include "observe/trackers/mlflow_tracker.hpp"
#include "observe/trackers/synced_tracker.hpp"
#include "observe/trackers/tensorboard_tracker.hpp"

namespace hortator::observe {
namespace {

struct BuiltinTracker {
  const char* name;
  std::shared_ptr<Tracker> (*make)();
  bool is_in_all = true;  ///< whether "all" means it, too
};

template <typename T>
std::shared_ptr<Tracker> make() {
  return std::make_shared<T>();
}

constexpr BuiltinTracker builtin_trackers[] = {{"tensorboard", make<TensorBoardTracker>},
                                               {JsonLinesTracker::tracker_name, make<JsonLinesTracker>},
                                               {"csv", make<CsvTracker>},
                                               {"mlflow", make<MlflowTracker>, false}};

/// Services that Accelerate reaches through their Python packages, and whose commands take event files or CSV.
constexpr SyncedService from_event_files[] = {
    {"wandb",
     [](const auto& folder, const auto& run) {
       return text::concat("`wandb sync ", text::quote((folder / run).string()), "` uploads this run");
     }},
    {"aim",
     [](const auto& folder, const auto&) {
       return text::concat("`aim convert tensorboard --logdir ", text::quote(folder.string()), "` imports this run");
     }},
    {"swanlab", [](const auto& folder, const auto&) {
       return text::concat("`swanlab convert -t tensorboard --tb_logdir ", text::quote(folder.string()),
                           "` uploads this run");
     }}};
constexpr SyncedService from_csv[] = {
    {"dvclive",
     [](const auto& folder, const auto& run) {
       return text::concat("`dvc plots show ", text::quote((folder / (run + ".csv")).string()), "` shows this run");
     }},
    {"trackio", [](const auto& folder, const auto& run) {
       return text::concat("trackio.import_csv(", text::quote((folder / (run + ".csv")).string()),
                           ", project=", text::quote(run), ") in Python imports this run");
     }}};

/// Services without a command that takes files.
struct PythonTracker {
  const char* name;
  const char* alternative;
};
constexpr PythonTracker python_trackers[] = {
    {"comet_ml", "log with \"jsonl\", and pass its lines to an Experiment's log_metrics"},
    {"clearml", "log with \"jsonl\", and pass its lines to a Logger's report_scalar"}};

void check_name(const std::string& name) {
  for (const auto& python : python_trackers) {
    if (name != python.name) continue;
    throw UsageError({.what = text::concat("log_with: ", text::quote(name), " is not available"),
                      .why = "it is a Python package",
                      .hint = text::concat(python.alternative, "; or write a hortator::Tracker")});
  }
  std::vector<std::string> names = {"all"};
  for (const auto& known : builtin_trackers) names.emplace_back(known.name);
  for (const auto& service : from_event_files) names.emplace_back(service.name);
  for (const auto& service : from_csv) names.emplace_back(service.name);
  if (std::ranges::find(names, name) == names.end()) {
    throw UsageError({.what = "log_with: unknown tracker " + text::quote(name), .hint = text::suggestion(name, names)});
  }
}

std::vector<std::string> names_of(const LogWith& one) {
  const auto* name = std::get_if<std::string>(&one.chosen());
  if (name == nullptr) return {std::get<std::shared_ptr<Tracker>>(one.chosen())->name()};
  if (*name != "all") return {*name};
  std::vector<std::string> all;
  for (const auto& known : builtin_trackers) {
    if (known.is_in_all) all.emplace_back(known.name);
  }
  return all;
}

std::shared_ptr<Tracker> make_tracker(const std::string& name) {
  for (const auto& service : from_event_files) {
    if (name == service.name) return std::make_shared<SyncedTracker<TensorBoardTracker>>(service);
  }
  for (const auto& service : from_csv) {
    if (name == service.name) return std::make_shared<SyncedTracker<CsvTracker>>(service);
  }
  const auto* known = std::find_if(std::begin(builtin_trackers), std::end(builtin_trackers),
                                   [&](const BuiltinTracker& one) { return one.name == name; });
  return known->make();
}

}  // namespace

void check_trackers(const std::vector<LogWith>& chosen) {
  std::set<std::string> seen;
  for (const auto& one : chosen) {
    if (const auto* name = std::get_if<std::string>(&one.chosen())) {
      check_name(*name);
    } else if (!std::get<std::shared_ptr<Tracker>>(one.chosen())) {
      throw UsageError({.what = "log_with: a tracker is null", .hint = "pass std::make_shared<MyTracker>()"});
    }
    for (const auto& name : names_of(one)) {
      if (name == "mlflow" && std::holds_alternative<std::string>(one.chosen()))
        static_cast<void>(mlflow_settings(core::process_variables()));
      if (seen.insert(name).second) continue;
      throw UsageError({.what = "log_with: the tracker " + text::quote(name) + " is named twice",
                        .why = "every number would be recorded twice",
                        .hint = "name it once"});
    }
  }
}

std::vector<std::shared_ptr<Tracker>> make_trackers(const std::vector<LogWith>& chosen) {
  std::vector<std::shared_ptr<Tracker>> made;
  for (const auto& one : chosen) {
    if (const auto* own = std::get_if<std::shared_ptr<Tracker>>(&one.chosen())) {
      made.push_back(*own);
    } else {
      for (const auto& name : names_of(one)) made.push_back(make_tracker(name));
    }
  }
  return made;
}

}  // namespace hortator::observe

namespace hortator {

Tracker::~Tracker() = default;

void Tracker::start(const TrackerStart& /*start*/) {}
void Tracker::store_config(const TrackerConfig& /*config*/) {}
void Tracker::rewind(std::int64_t /*last_step*/) {}
void Tracker::flush() {}
void Tracker::finish() {}

void Tracker::log_text(const std::string& /*name*/, const std::string& /*text*/, std::int64_t /*step*/) {
  refuse("text");
}

void Tracker::log_histogram(const std::string& /*name*/, const at::Tensor& /*numbers*/, std::int64_t /*step*/) {
  refuse("histograms");
}

void Tracker::log_images(const std::string& /*name*/, const at::Tensor& /*images*/, std::int64_t /*step*/) {
  refuse("images");
}

void Tracker::log_audio(const std::string& /*name*/, const at::Tensor& /*samples*/, int /*sample_rate*/,
                        std::int64_t /*step*/) {
  refuse("audio");
}

void Tracker::log_table(const std::string& /*name*/, const TrackerTable& /*table*/, std::int64_t /*step*/) {
  refuse("tables");
}

void Tracker::log_figure(const std::string& /*name*/, const std::filesystem::path& /*png*/, std::int64_t /*step*/) {
  refuse("plots");
}

void Tracker::log_artifact(const std::filesystem::path& /*file*/) { refuse("files", "mlflow"); }

void Tracker::refuse(std::string_view what, std::string_view keeper) const {
  throw UsageError({.what = text::concat("The tracker ", text::quote(name()), " cannot keep ", what),
                    .why = "it records only numbers by step",
                    .hint = text::concat("add '", keeper, "' to log_with and use get_tracker(\"", keeper, "\")")});
}

}  // namespace hortator
