#include "accelerator/training/launched.hpp"

#include <charconv>
#include <cmath>
#include <hortator/error.hpp>

#include "accelerator/interop/accelerate/sharding_variables.hpp"
#include "accelerator/interop/deepspeed/deepspeed_file.hpp"
#include "core/log.hpp"
#include "core/text/text.hpp"

namespace hortator::accelerator {
namespace {

[[noreturn]] void refuse(const char* name, const std::string& text, const std::string& hint) {
  throw UsageError({.what = text::concat(name, " is ", text::quote(text)), .hint = hint});
}

std::optional<std::int64_t> steps(const core::Variables& variables) {
  const auto set =
      core::first_set(variables, {"HORTATOR_GRADIENT_ACCUMULATION_STEPS", "ACCELERATE_GRADIENT_ACCUMULATION_STEPS"});
  if (!set) return std::nullopt;
  long long number = 0;
  if (!text::parse_integer(set->value, number) || number < 1)
    refuse(set->name, set->value, "set it to a positive number");
  return number;
}

// The program's own settings take precedence, as for the stage.
ZeroConfig offloading(ZeroConfig config, const core::Variables& variables) {
  const auto of_accelerate = accelerate_offload(variables, config.stage.value_or(0));
  const auto fill = [&](std::filesystem::path& place, const char* name,
                        const std::optional<core::SetVariable>& otherwise) {
    auto set = core::first_set(variables, {name});
    if (!set) set = otherwise;
    if (set && place.empty()) place = set->value;
  };
  fill(config.offload_optimizer, "HORTATOR_OFFLOAD_OPTIMIZER", of_accelerate.optimizer);
  fill(config.offload_parameters, "HORTATOR_OFFLOAD_PARAMETERS", of_accelerate.parameters);
  return config;
}

ZeroConfig gathering(ZeroConfig config, const core::Variables& variables) {
  const auto set = core::yes_or_no(variables, "HORTATOR_INT8_GATHERS",
                                   "set it to 1 to gather parameters in int8 at ZeRO stage 3, or unset it");
  config.int8_gathers = config.int8_gathers || set.value_or(false);
  return config;
}

// The program's own settings take precedence.
ParallelConfig axes(ParallelConfig config, const core::Variables& variables) {
  const auto read = [&](std::optional<int>& axis, const char* name, const char* of_accelerate) {
    auto set = core::first_set(variables, {name});
    if (!set && of_accelerate != nullptr) set = accelerate_axis(variables, of_accelerate);
    if (!set) return;
    long long number = 0;
    if (!text::parse_integer(set->value, number) || number < 1 || number > 100'000'000)
      refuse(set->name, set->value, "set it to a positive number of ranks");
    if (axis.value_or(1) == 1) axis = static_cast<int>(number);
  };
  read(config.replicate, "HORTATOR_REPLICATE", "PARALLELISM_CONFIG_DP_REPLICATE_SIZE");
  read(config.shard, "HORTATOR_SHARD", "PARALLELISM_CONFIG_DP_SHARD_SIZE");
  read(config.tensor, "HORTATOR_TENSOR", "PARALLELISM_CONFIG_TP_SIZE");
  read(config.context, "HORTATOR_CONTEXT", "PARALLELISM_CONFIG_CP_SIZE");
  read(config.context, "HORTATOR_CONTEXT", "PARALLELISM_CONFIG_SP_SIZE");
  read(config.experts, "HORTATOR_EXPERTS", nullptr);
  read(config.pipeline, "HORTATOR_PIPELINE", nullptr);
  if (const auto set = core::first_set(variables, {"HORTATOR_CONTEXT_ATTENTION"})) {
    if (set->value != "gather" && set->value != "ring") refuse(set->name, set->value, "set it to gather or ring");
    const auto form = set->value == "ring" ? ContextAttention::ring : ContextAttention::gather;
    config.context_attention = config.context_attention.value_or(form);
  }
  return config;
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

// Sets what neither the program nor a variable has set.
AcceleratorOptions with_deepspeed(AcceleratorOptions options, bool program_shards, const core::Variables& variables) {
  const auto file = deepspeed_file(variables);
  if (!file) return options;
  const auto of_file = read_deepspeed_file(file->value, {}, variables).options;
  const auto over = read_deepspeed_file(file->value, options, variables).options;
  options.zero = filled(options.zero, of_file.zero, program_shards);
  options.grad_scaler = over.grad_scaler;
  options.ddp = over.ddp;
  const auto is_set = [&](std::initializer_list<const char*> names) {
    return core::first_set(variables, names).has_value();
  };
  if (!options.mixed_precision && !is_set({"HORTATOR_MIXED_PRECISION"}) && of_file.mixed_precision)
    options.mixed_precision = of_file.mixed_precision;
  if (!is_set({"HORTATOR_GRADIENT_ACCUMULATION_STEPS"}))
    options.gradient_accumulation_steps = over.gradient_accumulation_steps;
  return options;
}

// Each run of a study starts from scratch in a folder of its own: in the program's folder it would resume the user's
// run and replace its checkpoints.
ProjectOptions placed(ProjectOptions project, const core::Variables& variables) {
  const auto is_set = [&](const char* name) { return !variables(name).value_or("").empty(); };
  if (!is_set("HORTATOR_MEASURE") || !is_set("HORTATOR_RUN_DIR")) return project;
  project.dir = *variables("HORTATOR_RUN_DIR");
  project.logging_dir.clear();
  return project;
}

}  // namespace

AcceleratorOptions launched(AcceleratorOptions options, const core::Variables& variables) {
  refuse_unsupported(variables);
  const bool program_shards = options.zero.stage.has_value();
  options.zero = gathering(offloading(launched_sharding(options.zero, variables), variables), variables);
  options.parallel = axes(options.parallel, variables);
  if (const auto number = steps(variables)) options.gradient_accumulation_steps = *number;
  options = with_deepspeed(std::move(options), program_shards, variables);
  options.project = placed(options.project, variables);
  return options;
}

// The program's own setting takes precedence, as for mixed_precision.
ZeroConfig launched_sharding(ZeroConfig config, const core::Variables& variables) {
  auto set = core::first_set(variables, {"HORTATOR_ZERO_STAGE"});
  if (!set) set = accelerate_sharding(variables);
  if (!set) return config;
  try {
    const auto asked = zero_config(set->value);
    if (config.stage) return config;
    config.stage = asked.stage;
    if (!config.shard_group) config.shard_group = asked.shard_group;
  } catch (const UsageError&) {
    refuse(
        set->name, set->value,
        "set it to a stage from 0 to 3, or to NO_SHARD, SHARD_GRAD_OP, FULL_SHARD, HYBRID_SHARD or HYBRID_SHARD_ZERO2");
  }
  return config;
}

std::optional<double> launched_clipping(const core::Variables& variables) {
  if (!core::first_set(variables, {"HORTATOR_GRADIENT_CLIPPING"})) {
    if (const auto file = deepspeed_file(variables))
      return read_deepspeed_file(file->value, {}, variables).gradient_clipping;
    if (!accelerate_clipping(variables)) return std::nullopt;
  }
  return automatic_clipping(variables);
}

std::optional<double> automatic_clipping(const core::Variables& variables) {
  auto set = core::first_set(variables, {"HORTATOR_GRADIENT_CLIPPING"});
  if (!set || set->value == "auto") set = accelerate_clipping(variables);
  if (!set) return 1;
  double norm = 0;
  const auto* const end = set->value.data() + set->value.size();
  const auto result = std::from_chars(set->value.data(), end, norm);
  if (result.ec != std::errc() || result.ptr != end || !(norm >= 0) || !std::isfinite(norm))
    refuse(set->name, set->value, "set it to a positive norm, or to 0, which does not clip");
  return norm > 0 ? std::optional(norm) : std::nullopt;
}

void report_launched_file(const core::Variables& variables) {
  const auto file = deepspeed_file(variables);
  if (!file) return;
  const auto config = read_deepspeed_file(file->value, {}, variables);
  if (!config.ignored.empty()) log::info("without effect here, of ", file->value, ": ", text::join(config.ignored));
  if (!config.unknown.empty()) log::warn("unknown entries in ", file->value, ": ", text::join(config.unknown));
}

std::optional<RecomputeLayersOptions> launched_recomputation(const core::Variables& variables) {
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

}  // namespace hortator::accelerator
