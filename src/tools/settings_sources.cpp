#include "tools/settings_sources.hpp"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <hortator/error.hpp>
#include <optional>

#include "core/environment/environment.hpp"
#include "core/text/json.hpp"
#include "core/text/text.hpp"
#include "core/whole_file.hpp"
#include "launch/pbs.hpp"
#include "launch/placement.hpp"
#include "launch/settings/config_path.hpp"
#include "launch/settings/deepspeed_file.hpp"
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

/// The text of a scalar.
std::string scalar(const YAML::Node& node) { return node.IsNull() ? std::string() : node.Scalar(); }

/// A list or map within a value as YAML would write it on one line. The depth is limited by read_settings().
std::string flow_text(const YAML::Node& node) {
  if (!node.IsSequence() && !node.IsMap()) return scalar(node);
  std::vector<std::string> parts;
  if (node.IsSequence()) {
    for (const auto& one : node) parts.push_back(flow_text(one));
    return "[" + text::join(parts) + "]";
  }
  for (const auto& one : node) parts.push_back(flow_text(one.first) + ": " + flow_text(one.second));
  return "{" + text::join(parts) + "}";
}

/// The text of a value of a list or map. A value with values of its own is an error in files of Hortator only.
std::string inner_text(const YAML::Node& node, const std::filesystem::path& file, Errors& errors) {
  if (node.IsSequence() || node.IsMap())
    errors.push_back(error_at(file, node.Mark(), "nested values are not supported"));
  return flow_text(node);
}

launching::ConfigEntry read_entry(const std::string& key, int line, const YAML::Node& value,
                                  const std::filesystem::path& file, Errors& errors) {
  launching::ConfigEntry entry{.key = key, .line = line};
  const auto add = [&](const std::string& word, const YAML::Mark& mark) {
    entry.values.push_back(word);
    entry.lines.push_back(mark.line + 1);
  };
  if (value.IsSequence()) {
    entry.shape = launching::EntryShape::list;
    for (const auto& one : value) add(inner_text(one, file, errors), one.Mark());
  } else if (value.IsMap()) {
    entry.shape = launching::EntryShape::map;
    for (const auto& one : value)
      add(inner_text(one.first, file, errors) + "=" + inner_text(one.second, file, errors), one.first.Mark());
  } else if (!value.IsNull()) {
    entry.values = {scalar(value)};
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
  std::sort(known.begin(), known.end());
  throw UsageError({.what = "--site: unknown site " + text::quote(site), .hint = text::suggestion(site, known)});
}

// Nothing where the job's variables contradict each other: the launch reports that.
std::optional<launching::PbsJob> pbs_job() {
  try {
    return launching::read_pbs(variable, core::read_whole);
  } catch (const UsageError&) {
    return {};
  }
}

// The number of tasks of the allocation, if no other layer gives the number of ranks. PBS has a line for each in its
// node file, but also a single one where nothing was requested.
launching::Layer allocation_layer(const launching::Settings& settings) {
  for (const auto* key : {"ranks", "nodes", "ranks_per_node"}) {
    if (settings.find(key)) return {};
  }
  const auto tasks = variable("SLURM_NTASKS");
  if (variable("SLURM_JOB_ID")) {
    if (!tasks || tasks->empty()) return {};
    return {{"ranks", {{*tasks}, "SLURM_NTASKS"}}};
  }
  const auto job = pbs_job();
  if (!job || job->slots < 2) return {};
  return {{"ranks", {{std::to_string(job->slots)}, "PBS_NODEFILE"}}};
}

// Reads the DeepSpeed file that the layer names, and sets what it sets. Like Accelerate, looks for it in the current
// folder; then beside the settings file, where templates have it. Returns what the file sets.
launching::Layer add_deepspeed(launching::Layer& layer, const fs::path& beside) {
  const auto named = layer.find("deepspeed_config");
  if (named == layer.end()) return {};
  auto& name = named->second.values.front();
  const auto file = is_file(name) ? fs::path(name) : beside / name;
  const auto content = core::read_at_most(file, core::max_record_bytes);
  if (!content)
    throw UsageError(
        {.what = text::concat(named->second.origin, ": the DeepSpeed file ", text::quote(name), " cannot be read"),
         .why = text::concat("it was looked for in ", fs::current_path(),
                             beside.empty() ? "" : " and beside the settings file"),
         .hint = "check the name"});
  auto of_file = launching::read_deepspeed_settings(*content, file.string());
  launching::add_deepspeed_settings(layer, of_file);
  layer["deepspeed_config"].values.front() = fs::absolute(file).lexically_normal().string();  // for other nodes
  return of_file;
}

void refuse(launching::AccelerateFile& settings, std::string_view key, const std::string& reason) {
  for (auto& remark : settings.remarks) {
    if (!remark.key.ends_with(key)) continue;
    remark.support = launching::Support::refused;
    remark.text = reason;
  }
}

// Accelerate does not accept a mixed_precision beside one that the DeepSpeed file enables.
void compare_precision(launching::AccelerateFile& settings, const launching::Layer& of_file) {
  const auto enabled = of_file.find("mixed_precision");
  if (enabled == of_file.end()) return;
  const auto& chosen = settings.layer.at("mixed_precision");
  if (chosen.values == enabled->second.values) return;
  refuse(settings, "mixed_precision",
         text::concat(text::quote(chosen.values.front()), ", and the DeepSpeed file enables ",
                      enabled->second.values.front()));
}

}  // namespace

ParsedFile parse_yaml(const std::filesystem::path& file) {
  ParsedFile parsed;
  try {
    const auto root = YAML::Load(read_settings(file));
    if (root.IsNull()) return parsed;
    if (!root.IsMap()) throw error_at(file, root.Mark(), "expected keys");
    for (const auto& pair : root) {
      const auto key = inner_text(pair.first, file, parsed.errors);
      if (launching::is_simulation_section(key)) continue;
      parsed.entries.push_back(read_entry(key, pair.first.Mark().line + 1, pair.second, file, parsed.errors));
    }
    if (launching::is_accelerate_file(parsed.entries)) parsed.errors.clear();
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

launching::AccelerateFile read_accelerate(const std::vector<launching::ConfigEntry>& entries, const fs::path& file) {
  auto settings = launching::read_accelerate_file(launching::open_sections(entries), file.string());
  try {
    compare_precision(settings, add_deepspeed(settings.layer, file.parent_path()));
  } catch (const UsageError& error) {
    refuse(settings, "deepspeed_config_file", error.what());
  }
  return settings;
}

launching::Layer read_file(const fs::path& file) {
  const auto [entries, errors] = parse_yaml(file);
  if (!launching::is_accelerate_file(entries)) {
    auto layer = launching::read_settings(entries, file.string(), errors);
    add_deepspeed(layer, file.parent_path());
    return layer;
  }
  auto settings = read_accelerate(entries, file);
  launching::throw_if_refused(settings, file.string(), errors);
  return std::move(settings.layer);
}

launching::Settings gather_settings(const launching::Layer& flags, const std::optional<std::string>& config_file) {
  std::vector<launching::Layer> layers = {flags, launching::from_environment(variable)};
  for (auto& layer : layers) add_deepspeed(layer, {});
  for (const auto& file : files_of(config_file)) layers.push_back(read_file(file));
  if (const auto site = launching::Settings(layers).word("site")) layers.push_back(read_file(site_file(*site)));
  layers.push_back(allocation_layer(launching::Settings(layers)));
  launching::settle_placement(layers);
  return launching::Settings(layers);
}

}  // namespace hortator::tools
