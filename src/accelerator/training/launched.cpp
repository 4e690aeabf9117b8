#include "accelerator/training/launched.hpp"

#include <filesystem>
#include <hortator/error.hpp>
#include <iomanip>
#include <type_traits>
#include <vector>

#include "accelerator/channels/zero.hpp"
#include "accelerator/interop/accelerate/launched_sharding.hpp"
#include "accelerator/interop/accelerate/sharding_variables.hpp"
#include "accelerator/interop/deepspeed/deepspeed_file.hpp"
#include "accelerator/options/option_table.hpp"
#include "core/environment/setting_key.hpp"
#include "core/log.hpp"
#include "core/text/text.hpp"

namespace hortator::accelerator {
namespace {

// Accelerate takes one of the variables of an axis.
void refuse_both(const std::vector<core::SetVariable>& set) {
  std::vector<std::string> chosen;
  for (const auto& one : set) {
    if (one.value != "1") chosen.emplace_back(one.name);
  }
  if (chosen.size() < 2) return;
  throw UsageError({.what = text::join(chosen, " and ") + " exclude each other",
                    .why = "they are one axis, and one of them can be above 1",
                    .hint = "set one of them to 1"});
}

// The variables that set an option: the key's own, otherwise those of Accelerate's launcher.
std::vector<core::SetVariable> set_variables(const core::SettingKey& key, const core::Variables& variables) {
  if (auto own = core::first_set(variables, {core::variable_of(key).c_str()})) return {*std::move(own)};
  std::vector<core::SetVariable> set;
  if (key.accelerate.empty()) return set;
  for (const auto& name : text::split(std::string(key.accelerate), ' ')) {
    if (auto variable = accelerate_variable(variables, name.c_str())) set.push_back(*std::move(variable));
  }
  refuse_both(set);
  return set;
}

// The program's own settings take precedence, except over a number that is always set. For an axis 1 counts as not set.
void fill(std::int64_t& option, const core::SettingKey& key, const core::SetVariable& set) {
  option = core::read_count(key, set);
}

void fill(std::optional<int>& axis, const core::SettingKey& key, const core::SetVariable& set) {
  const int ranks = core::read_count(key, set);
  if (axis.value_or(1) == 1) axis = ranks;
}

void fill(bool& option, const core::SettingKey& key, const core::SetVariable& set) {
  option = core::read_onoff(key, set) || option;
}

void fill(std::filesystem::path& place, const core::SettingKey& /*key*/, const core::SetVariable& set) {
  if (place.empty()) place = set.value;
}

void fill(std::vector<std::string>& names, const core::SettingKey& /*key*/, const core::SetVariable& set) {
  if (!names.empty()) return;
  for (const auto& name : text::split(set.value, ',')) {
    if (!name.empty()) names.push_back(name);
  }
}

template <typename Enum>
requires std::is_enum_v<Enum>
void fill(std::optional<Enum>& option, const core::SettingKey& key, const core::SetVariable& set) {
  const auto chosen = static_cast<Enum>(core::read_choice(key, set));
  option = option.value_or(chosen);
}

void fill_from_table(AcceleratorOptions& options, const core::Variables& variables) {
  visit_options(options, [&]<typename Row>(const Row& row, auto& option) {
    if constexpr (Row::reader == OptionReader::table) {
      const auto& key = core::program_setting(row.setting);
      for (const auto& set : set_variables(key, variables)) fill(option, key, set);
    }
  });
}

// The interval of a launch replaces that of the program, in steps and in time.
template <typename Options>
void fill_interval(Options& options, std::string_view setting, const core::Variables& variables) {
  const auto& key = core::program_setting(setting);
  const auto set = core::first_set(variables, {core::variable_of(key).c_str()});
  if (!set) return;
  const auto interval = core::read_interval(key, *set);
  options.every_steps = interval.steps;
  options.every = interval.time;
}

void fill_offloads(ZeroConfig& config, const core::Variables& variables) {
  const auto of_accelerate = accelerate_offload(variables, config.stage.value_or(0));
  const auto fill = [](std::filesystem::path& place, const std::optional<core::SetVariable>& set) {
    if (set && place.empty()) place = set->value;
  };
  fill(config.offload_optimizer, of_accelerate.optimizer);
  fill(config.offload_parameters, of_accelerate.parameters);
}

std::optional<core::SetVariable> deepspeed_file(const core::Variables& variables) {
  const auto own = core::first_set(variables, {"HORTATOR_DEEPSPEED_CONFIG"});
  return own ? own : accelerate_deepspeed_file(variables);
}

// A sharding of the program's own or of a variable stands; the file's parts fit only its own stage.
ZeroConfig filled(ZeroConfig config, const ZeroConfig& of_file, bool is_of_program) {
  if (is_of_program) return config;
  if (!config.stage) config.stage = of_file.stage.value_or(0);
  if (of_file.stage && config.stage != of_file.stage) return config;
  if (!config.shard_group) config.shard_group = of_file.shard_group;
  if (config.offload_optimizer.empty() && *config.stage > 0) config.offload_optimizer = of_file.offload_optimizer;
  if (config.offload_parameters.empty() && *config.stage == 3) config.offload_parameters = of_file.offload_parameters;
  config.int8_gathers = config.int8_gathers || of_file.int8_gathers;
  return config;
}

// The file's entries over the program's options, without those that count only where the program has none.
DeepspeedConfig read_over(AcceleratorOptions options, const std::string& file, const core::Variables& variables) {
  options.zero = {};
  options.mixed_precision.reset();
  return read_deepspeed_file(file, options, variables);
}

// Sets what neither the program nor a variable has set.
void fill_from_file(AcceleratorOptions& options, const DeepspeedConfig& file, bool program_shards,
                    const core::Variables& variables) {
  const auto is_set = [&](std::string_view setting) {
    return core::first_set(variables, {core::variable_of(core::program_setting(setting)).c_str()}).has_value();
  };
  options.zero = filled(options.zero, file.options.zero, program_shards);
  options.grad_scaler = file.options.grad_scaler;
  options.ddp = file.options.ddp;
  if (!options.mixed_precision && !is_set("mixed_precision")) options.mixed_precision = file.options.mixed_precision;
  if (!is_set("gradient_accumulation_steps"))
    options.gradient_accumulation_steps = file.options.gradient_accumulation_steps;
}

// DeepSpeed clips at 1 by default, but a file without the entry does not clip.
std::optional<double> max_norm(const DeepspeedConfig* file, const core::Variables& variables) {
  if (!core::first_set(variables, {"HORTATOR_GRADIENT_CLIPPING"})) {
    if (file != nullptr) return file->gradient_clipping;
    if (!accelerate_clipping(variables)) return std::nullopt;
  }
  return automatic_clipping(variables);
}

std::optional<RecomputeLayersOptions> recomputed_layers(const core::Variables& variables) {
  auto set = core::first_set(variables, {"HORTATOR_RECOMPUTE_LAYERS"});
  if (!set) set = accelerate_recomputation(variables);
  if (!set) return std::nullopt;
  if (set->value == "all") return RecomputeLayersOptions{.names = {"*"}};
  RecomputeLayersOptions options;
  for (auto name : text::split(set->value, ',')) {
    std::erase(name, ' ');
    if (!name.empty()) options.classes.push_back(name);
  }
  return options;
}

// Each run of a study, and each rehearsal, starts from scratch in a folder of its own: in the program's folder it would
// resume the user's run and replace its checkpoints.
ProjectOptions placed(ProjectOptions project, const core::Variables& variables) {
  const auto is_set = [&](const char* name) { return !variables(name).value_or("").empty(); };
  if ((!is_set("HORTATOR_MEASURE") && !is_set("HORTATOR_REHEARSE")) || !is_set("HORTATOR_RUN_DIR")) return project;
  project.dir = *variables("HORTATOR_RUN_DIR");
  project.logging_dir.clear();
  return project;
}

}  // namespace

LaunchedOptions launched(AcceleratorOptions options, const core::Variables& variables) {
  refuse_unsupported(variables);
  const bool program_shards = options.zero.stage.has_value();
  options.zero = launched_sharding(options.zero, variables);
  fill_from_table(options, variables);
  if (const auto set = accelerate_ignored(variables))
    fill(options.zero.ignore, core::program_setting("zero_ignore"), *set);
  if (const auto set = core::first_set(variables, {"HORTATOR_PARALLEL"}))
    options.parallel.automatic |= core::read_choice(core::program_setting("parallel"), *set) == 1;
  fill_interval(options.memory_checkpoint, "memory_checkpoint", variables);
  fill_interval(options.local_checkpoint, "local_checkpoint", variables);
  fill_interval(options.checkpoint, "project_checkpoint", variables);
  fill_offloads(options.zero, variables);
  std::optional<DeepspeedConfig> config;
  const auto file = deepspeed_file(variables);
  if (file) {
    config = read_over(options, file->value, variables);
    fill_from_file(options, *config, program_shards, variables);
  }
  options.project = placed(options.project, variables);
  LaunchedOptions result{.options = std::move(options),
                         .max_norm = max_norm(config ? &*config : nullptr, variables),
                         .recomputed = recomputed_layers(variables)};
  if (config) {
    result.deepspeed_file = file->value;
    result.ignored = std::move(config->ignored);
    result.unknown = std::move(config->unknown);
  }
  return result;
}

NamedValues LaunchedOptions::values() const {
  const bool is_sharded = options.zero.stage.value_or(0) > 0;
  const auto gathers = is_sharded ? gather_settings() : GatherSettings();
  return {{"the largest norm of gradients (HORTATOR_GRADIENT_CLIPPING)",
           text::concat(std::setprecision(17), max_norm.value_or(0))},
          {"the layers to recompute (HORTATOR_RECOMPUTE_LAYERS)",
           recomputed ? text::join(recomputed->names) + text::join(recomputed->classes) : ""},
          {"HORTATOR_GATHER_CAST", gathers.casts ? "1" : "0"},
          {"HORTATOR_GATHER_AHEAD", gathers.ahead ? "1" : "0"}};
}

void LaunchedOptions::report_file() const {
  if (!ignored.empty()) log::info("without effect here, of ", deepspeed_file, ": ", text::join(ignored));
  if (!unknown.empty()) log::warn("unknown entries in ", deepspeed_file, ": ", text::join(unknown));
}

}  // namespace hortator::accelerator
