#include "observe/trackers/mlflow_store.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <nlohmann/json.hpp>

#include "core/hash.hpp"
#include "core/text/text.hpp"
#include "core/whole_file.hpp"
#include "observe/trackers/json_row.hpp"

namespace hortator::observe {
namespace {

namespace fs = std::filesystem;

// A text of JSON is one of YAML.
std::string yaml_text(const std::string& value) {
  return nlohmann::json(value).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// The value of a line "key: value" that mlflow_run_meta() has written.
std::string meta_field(const std::string& meta, const std::string& key) {
  const auto begin = meta.find("\n" + key + ": ");
  if (begin == std::string::npos) return "";
  const auto value = meta.substr(begin + key.size() + 3, meta.find('\n', begin + 1) - begin - key.size() - 3);
  const auto json = nlohmann::json::parse(value, nullptr, /*allow_exceptions=*/false);
  return json.is_string() ? json.get<std::string>() : value;
}

}  // namespace

std::string mlflow_experiment_meta(const std::string& id, const std::string& name, const fs::path& folder,
                                   std::int64_t created) {
  return text::concat("artifact_location: ", yaml_text(folder.string()), "\ncreation_time: ", created,
                      "\nexperiment_id: ", yaml_text(id), "\nlast_update_time: ", created,
                      "\nlifecycle_stage: active\nname: ", yaml_text(name), "\n");
}

std::string mlflow_run_meta(const MlflowRun& run) {
  constexpr int running = 1, finished = 3;
  return text::concat("artifact_uri: ", yaml_text((run.folder / "artifacts").string()),
                      "\nend_time: ", run.ended ? std::to_string(*run.ended) : "null", "\nentry_point_name: ''",
                      "\nexperiment_id: ", yaml_text(run.experiment), "\nlifecycle_stage: active",
                      "\nrun_id: ", yaml_text(run.id), "\nrun_name: ", yaml_text(run.name),
                      "\nrun_uuid: ", yaml_text(run.id), "\nsource_name: ''\nsource_type: 4\nsource_version: ''",
                      "\nstart_time: ", run.started, "\nstatus: ", run.ended ? finished : running,
                      "\ntags: []\nuser_id: ", yaml_text(run.user), "\n");
}

std::string mlflow_metric_row(double time, double value, std::int64_t step) {
  return text::concat(static_cast<std::int64_t>(time * 1000), " ", number_text(value), " ", step, "\n");
}

std::optional<std::int64_t> step_of_mlflow_row(std::string_view row) {
  const auto parts = text::split(row, ' ');
  long long step = 0;
  if (parts.size() != 3 || !text::parse_integer(parts[2], step)) return std::nullopt;
  return step;
}

// Slashes make folders: parts that would lead elsewhere are changed as well.
std::string mlflow_name(std::string_view name) {
  std::string valid(name);
  std::ranges::replace_if(
      valid,
      [](unsigned char c) {
        return std::isalnum(c) == 0 && std::string_view("_-. /:").find(static_cast<char>(c)) == std::string_view::npos;
      },
      '_');
  std::vector<std::string> parts;
  for (const auto& part : text::split(valid, '/')) {
    if (!part.empty()) parts.push_back(part == "." || part == ".." ? "_" : part);
  }
  return parts.empty() ? "_" : text::join(parts, "/");
}

bool share_mlflow_path(std::string_view a, std::string_view b) {
  const auto& [shorter, longer] = std::minmax(a, b, [](auto x, auto y) { return x.size() < y.size(); });
  return longer.starts_with(shorter) && (longer.size() == shorter.size() || longer[shorter.size()] == '/');
}

std::string mlflow_experiment_id(std::string_view name) {
  constexpr std::uint64_t first = 100'000'000'000'000'000U;
  return std::to_string(first + core::hash(name) % (9 * first));
}

std::optional<MlflowRun> mlflow_run_in(const fs::path& folder) {
  const auto meta = core::read_whole(folder / "meta.yaml");
  if (!meta) return std::nullopt;
  MlflowRun run{.experiment = meta_field(*meta, "experiment_id"),
                .id = meta_field(*meta, "run_id"),
                .name = meta_field(*meta, "run_name"),
                .user = meta_field(*meta, "user_id"),
                .folder = folder};
  long long started = 0;
  if (run.id != folder.filename() || !text::parse_integer(meta_field(*meta, "start_time"), started))
    return std::nullopt;
  run.started = started;
  return run;
}

std::optional<MlflowRun> newest_mlflow_run(const fs::path& experiment) {
  std::optional<MlflowRun> newest;
  std::error_code error;
  for (fs::directory_iterator entry(experiment, error), end; !error && entry != end; entry.increment(error)) {
    auto run = mlflow_run_in(entry->path());
    if (run && (!newest || run->started > newest->started)) newest = std::move(run);
  }
  return newest;
}

}  // namespace hortator::observe
