#include "tools/config/sources.hpp"

#include <yaml-cpp/yaml.h>

#include <hortator/error.hpp>

#include "core/environment/environment.hpp"
#include "core/text/json.hpp"
#include "core/text/text.hpp"
#include "core/whole_file.hpp"
#include "launch/placement.hpp"
#include "launch/settings/config_path.hpp"
#include "launch/settings/simulation_sections.hpp"
#include "tools/programs.hpp"

namespace hortator::tools {
namespace {

using Errors = std::vector<UsageError>;

UsageError error_at(const std::filesystem::path& file, const YAML::Mark& mark, const std::string& what) {
  return UsageError({.what = text::concat(file.string(), ':', mark.line + 1, ": ", what),
                     .hint = "a settings file has lines \"key: value\""});
}

/// The content of a file, with the nesting of brackets limited: yaml-cpp recurses for each level (and limits
/// indentation itself).
std::string read_settings(const std::filesystem::path& file) {
  constexpr std::uint64_t max_bytes = std::uint64_t{1} << 20;
  auto content = core::read_at_most(file, max_bytes);
  if (!content) {
    throw UsageError({.what = text::quote(file.string()) + " cannot be read",
                      .why = text::concat("it is missing, or larger than ", max_bytes, " bytes"),
                      .hint = "check the name"});
  }
  if (!core::is_shallow(*content)) {
    throw UsageError({.what = text::concat(text::quote(file.string()), " has brackets nested deeper than ",
                                           core::max_record_levels, " levels"),
                      .hint = "a settings file has lines \"key: value\""});
  }
  return std::move(*content);
}

/// The text of a node; nothing, and an error, for a node with nodes of its own.
std::optional<std::string> scalar(const YAML::Node& node, const std::filesystem::path& file, Errors& errors) {
  if (node.IsNull()) return "";
  if (node.IsScalar()) return node.Scalar();
  errors.push_back(error_at(file, node.Mark(), "nested values are not supported"));
  return {};
}

launching::ConfigEntry read_entry(const std::string& key, int line, const YAML::Node& value,
                                  const std::filesystem::path& file, Errors& errors) {
  launching::ConfigEntry entry{.key = key, .line = line};
  const auto add = [&](const std::optional<std::string>& word, const YAML::Mark& mark) {
    if (!word) return;
    entry.values.push_back(*word);
    entry.lines.push_back(mark.line + 1);
  };
  if (value.IsSequence()) {
    entry.shape = launching::EntryShape::list;
    for (const auto& one : value) add(scalar(one, file, errors), one.Mark());
  } else if (value.IsMap()) {
    entry.shape = launching::EntryShape::map;
    for (const auto& one : value) {
      const auto name = scalar(one.first, file, errors);
      const auto text = scalar(one.second, file, errors);
      if (name && text) add(*name + "=" + *text, one.first.Mark());
    }
  } else if (const auto text = scalar(value, file, errors); text && !value.IsNull()) {
    entry.values = {*text};
  }
  return entry;
}

namespace fs = std::filesystem;
using core::variable;

bool is_file(const fs::path& file) {
  std::error_code ignored;
  return fs::is_regular_file(file, ignored);
}

/// The centre's FOLDER/NAME, for each folder that has it.
std::vector<fs::path> central_files(const fs::path& name) {
  std::vector<fs::path> files;
  for (const auto& folder : launching::central_folders(variable("XDG_CONFIG_DIRS"))) {
    if (is_file(folder / name)) files.push_back(folder / name);
  }
  return files;
}

std::vector<fs::path> files_of_user(const std::optional<std::string>& config_file) {
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

std::vector<fs::path> files_of(const std::optional<std::string>& config_file) {
  auto files = files_of_user(config_file);
  const auto central = central_files("config.yaml");
  files.insert(files.end(), central.begin(), central.end());
  return files;
}

fs::path site_file(const std::string& site) {
  if (site.find('/') != std::string::npos || site.ends_with(".yaml")) return site;
  const auto central = central_files(fs::path("sites") / (site + ".yaml"));
  if (!central.empty()) return central.front();
  const auto file = data_folder() / "sites" / (site + ".yaml");
  if (is_file(file)) return file;
  auto folders = launching::central_folders(variable("XDG_CONFIG_DIRS"));
  folders.push_back(data_folder());
  std::vector<std::string> known;
  std::error_code ignored;
  for (const auto& folder : folders) {
    for (const auto& entry : fs::directory_iterator(folder / "sites", ignored)) known.push_back(entry.path().stem());
  }
  throw UsageError({.what = "--site: unknown site " + text::quote(site), .hint = text::suggestion(site, known)});
}

// The number of tasks of the allocation, if no other layer gives the number of ranks.
launching::Layer slurm_layer(const launching::Settings& settings) {
  for (const auto* key : {"ranks", "nodes", "ranks_per_node"}) {
    if (settings.find(key)) return {};
  }
  const auto tasks = variable("SLURM_NTASKS");
  if (!variable("SLURM_JOB_ID") || !tasks || tasks->empty()) return {};
  return {{"ranks", {{*tasks}, "SLURM_NTASKS"}}};
}

}  // namespace

ParsedFile parse_yaml(const std::filesystem::path& file) {
  ParsedFile parsed;
  try {
    const auto root = YAML::Load(read_settings(file));
    if (root.IsNull()) return parsed;
    if (!root.IsMap()) throw error_at(file, root.Mark(), "expected keys");
    for (const auto& pair : root) {
      const auto key = scalar(pair.first, file, parsed.errors);
      if (!key || launching::is_simulation_section(*key)) continue;
      parsed.entries.push_back(read_entry(*key, pair.first.Mark().line + 1, pair.second, file, parsed.errors));
    }
  } catch (const YAML::Exception& error) {
    throw error_at(file, error.mark, error.msg);
  }
  return parsed;
}

std::vector<launching::ConfigEntry> read_yaml(const std::filesystem::path& file) {
  auto parsed = parse_yaml(file);
  launching::throw_all(parsed.errors, file.string());
  return std::move(parsed.entries);
}

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
  const auto [entries, errors] = parse_yaml(file);
  if (!launching::is_accelerate_file(entries)) return launching::read_settings(entries, file.string(), errors);
  const auto reference = launching::read_accelerate_file(launching::open_sections(entries), file.string());
  launching::throw_if_refused(reference, file.string(), errors);
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
