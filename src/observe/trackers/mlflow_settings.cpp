#include "observe/trackers/mlflow_settings.hpp"

#include <algorithm>
#include <cctype>
#include <hortator/error.hpp>
#include <nlohmann/json.hpp>

#include "core/text/text.hpp"

namespace hortator::observe {
namespace {

/// The folder of "file:///scratch/mlruns", "file:mlruns" or "/scratch/mlruns".
std::filesystem::path store_of(const std::string& uri) {
  const auto colon = uri.find(':');
  const bool has_scheme = colon != std::string::npos && uri.find('/') > colon;
  if (!has_scheme) return uri;
  if (uri.starts_with("file:")) {
    auto path = uri.substr(colon + 1);
    if (path.starts_with("///")) path.erase(0, 2);
    if (!path.empty() && !path.starts_with("//")) return path;
  }
  throw UsageError({.what = "MLFLOW_TRACKING_URI is " + text::quote(uri),
                    .why = "runs are recorded in a folder, without Python, and reach no server or database from here",
                    .hint = "set it to a folder, or unset it and import the folder mlruns later: "
                            "`mlflow-export-import` copies runs to a server"});
}

std::map<std::string, std::string> tags_of(const std::string& text) {
  const auto json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) {
    throw UsageError({.what = "MLFLOW_TAGS is " + text::quote(text),
                      .why = "tags are a JSON object",
                      .hint = R"(write it as {"team": "ocean", "attempt": "3"})"});
  }
  std::map<std::string, std::string> tags;
  for (const auto& [name, value] : json.items())
    tags[name] = value.is_string() ? value.get<std::string>() : value.dump();
  return tags;
}

const std::string& require_run_id(const std::string& id) {
  const auto is_valid = [](unsigned char c) { return std::isalnum(c) != 0 || c == '_' || c == '-'; };
  if (id.size() <= 256 && std::ranges::all_of(id, is_valid) && std::isalnum(static_cast<unsigned char>(id[0])) != 0)
    return id;
  throw UsageError({.what = "MLFLOW_RUN_ID is " + text::quote(id),
                    .why = "MLflow's ids have letters, digits, '-' and '_'",
                    .hint = "use the id of a run, or unset it for a new one"});
}

}  // namespace

MlflowSettings mlflow_settings(const core::Variables& variables) {
  const auto set = [&](const char* name) -> std::optional<std::string> {
    auto value = variables(name);
    return value && !value->empty() ? std::move(value) : std::nullopt;
  };
  MlflowSettings settings{.experiment = set("MLFLOW_EXPERIMENT_NAME"), .run_name = set("MLFLOW_RUN_NAME")};
  if (const auto uri = set("MLFLOW_TRACKING_URI")) settings.store = store_of(*uri);
  if (const auto id = set("MLFLOW_RUN_ID")) settings.run_id = require_run_id(*id);
  if (const auto tags = set("MLFLOW_TAGS")) settings.tags = tags_of(*tags);
  return settings;
}

}  // namespace hortator::observe
