#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// The files of MLflow's file store: a folder of experiments, which hold folders of runs.
namespace hortator::observe {

/// What meta.yaml says about a run.
struct MlflowRun {
  std::string experiment = "";  ///< its id
  std::string id = "";          ///< 32 hexadecimal digits
  std::string name = "";
  std::string user = "";
  std::filesystem::path folder = {};
  std::int64_t started = 0;             ///< milliseconds since 1970
  std::optional<std::int64_t> ended{};  ///< nothing while it runs
};

/// The text of an experiment's meta.yaml. Pure.
std::string mlflow_experiment_meta(const std::string& id, const std::string& name, const std::filesystem::path& folder,
                                   std::int64_t created);
/// The text of a run's meta.yaml. Pure.
std::string mlflow_run_meta(const MlflowRun& run);
/// "1732218651250 0.5 12", a line of a metric's file. Pure.
std::string mlflow_metric_row(double time, double value, std::int64_t step);
/// The step of such a line; nothing for any other line. Pure.
std::optional<std::int64_t> step_of_mlflow_row(std::string_view row);
/// The name as MLflow accepts it for metrics, parameters and files: other characters become underscores. Pure.
std::string mlflow_name(std::string_view name);
/// Whether two of these names, each of a file, are equal, or one is a folder of the other.
bool share_mlflow_path(std::string_view a, std::string_view b);
/// The id of an experiment with this name: 18 digits. Pure.
std::string mlflow_experiment_id(std::string_view name);

/// The run in this folder of an experiment; nothing if it is none.
std::optional<MlflowRun> mlflow_run_in(const std::filesystem::path& folder);
/// The newest run in the folder of an experiment; nothing if it has none.
std::optional<MlflowRun> newest_mlflow_run(const std::filesystem::path& experiment);

}  // namespace hortator::observe
