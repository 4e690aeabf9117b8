#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include "core/environment/environment.hpp"

namespace hortator::observe {

/// What MLflow's environment variables say about a run.
struct MlflowSettings {
  std::optional<std::filesystem::path> store = {};  ///< MLFLOW_TRACKING_URI; by default mlruns in the logging folder
  std::optional<std::string> experiment = {};       ///< MLFLOW_EXPERIMENT_NAME; by default the run's name
  std::optional<std::string> run_id = {};           ///< MLFLOW_RUN_ID: the run that is continued, or made
  std::optional<std::string> run_name = {};         ///< MLFLOW_RUN_NAME, of a new run
  std::map<std::string, std::string> tags = {};     ///< MLFLOW_TAGS
};

/// Throws UsageError for a variable that cannot be followed: a server as MLFLOW_TRACKING_URI, tags that are no JSON
/// object, an id that MLflow does not accept. Pure.
MlflowSettings mlflow_settings(const core::Variables& variables);

}  // namespace hortator::observe
