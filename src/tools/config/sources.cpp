#include "tools/config/sources.hpp"

#include <hortator/error.hpp>

#include "core/environment/environment.hpp"
#include "core/text/text.hpp"
#include "launch/placement.hpp"
#include "launch/settings/config_path.hpp"
#include "tools/config/yaml_file.hpp"
#include "tools/programs.hpp"

namespace hortator::tools {
namespace {

namespace fs = std::filesystem;
using core::variable;

bool is_file(const fs::path& file) {
  std::error_code ignored;
  return fs::is_regular_file(file, ignored);
}

std::vector<fs::path> files_of(const std::optional<std::string>& config_file) {
  if (config_file) return {*config_file};
  std::vector<fs::path> files;
  for (const auto& file : {fs::path("hortator.yaml"), user_file()}) {
    if (is_file(file)) files.push_back(file);
  }
  if (files.empty()) {
    if (const auto file = accelerate_file()) files.push_back(*file);
  }
  return files;
}

fs::path site_file(const std::string& site) {
  if (site.find('/') != std::string::npos || site.ends_with(".yaml")) return site;
  const auto file = data_folder() / "sites" / (site + ".yaml");
  if (is_file(file)) return file;
  std::vector<std::string> known;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(data_folder() / "sites", ignored))
    known.push_back(entry.path().stem());
  throw UsageError({.what = "--site: unknown site " + text::quote(site), .hint = text::suggestion(site, known)});
}

// The number of tasks of the allocation, if no other layer gives the number of ranks.
launching::Layer slurm_layer(const launching::Settings& settings) {
  for (const auto* key : {"num_processes", "num_machines", "ranks_per_node"}) {
    if (settings.find(key)) return {};
  }
  const auto tasks = variable("SLURM_NTASKS");
  if (!variable("SLURM_JOB_ID") || !tasks || tasks->empty()) return {};
  return {{"num_processes", {{*tasks}, "SLURM_NTASKS"}}};
}

}  // namespace

fs::path user_file() {
  const auto base = variable("XDG_CONFIG_HOME");
  const auto folder = base && !base->empty() ? fs::path(*base) : fs::path(variable("HOME").value_or("/")) / ".config";
  return folder / "hortator" / "config.yaml";
}

std::optional<fs::path> accelerate_file() {
  const auto yaml = launching::accelerate_config_path({.home = variable("HOME").value_or("/"),
                                                       .hf_home = variable("HF_HOME"),
                                                       .xdg_cache_home = variable("XDG_CACHE_HOME")});
  for (auto file : {yaml, fs::path(yaml).replace_extension(".json")}) {
    if (is_file(file)) return file;
  }
  return std::nullopt;
}

launching::Layer read_file(const fs::path& file) {
  const auto entries = read_yaml(file);
  if (!launching::is_accelerate_file(entries)) return launching::read_settings(entries, file.string());
  const auto reference = launching::read_accelerate_file(launching::open_sections(entries), file.string());
  launching::throw_if_refused(reference, file.string());
  return reference.layer;
}

launching::Settings gather_settings(const launching::Layer& flags, const std::optional<std::string>& config_file) {
  std::vector<launching::Layer> layers = {flags, launching::from_environment(variable)};
  for (const auto& file : files_of(config_file)) layers.push_back(read_file(file));
  if (const auto site = launching::Settings(layers).word("site")) layers.push_back(read_file(site_file(*site)));
  layers.push_back(slurm_layer(launching::Settings(layers)));
  launching::settle_placement(layers);
  return launching::Settings(layers);
}

}  // namespace hortator::tools
