#include "accelerator/training/launched.hpp"

#include <hortator/error.hpp>

#include "accelerator/interop/accelerate/sharding_variables.hpp"
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
    refuse(set->name, set->value, "set it to a number from 1 on");
  return number;
}

// The program's own setting takes precedence, as for mixed_precision.
ZeroConfig sharding(ZeroConfig config, const core::Variables& variables) {
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

// The program's own settings take precedence.
ParallelConfig axes(ParallelConfig config, const core::Variables& variables) {
  const auto read = [&](std::optional<int>& axis, const char* name) {
    const auto value = variables(name);
    if (!value || value->empty()) return;
    long long number = 0;
    if (!text::parse_integer(*value, number) || number < 1 || number > 100'000'000)
      refuse(name, *value, "set it to a number of ranks from 1 on");
    if (axis.value_or(1) == 1) axis = static_cast<int>(number);
  };
  read(config.replicate, "HORTATOR_REPLICATE");
  read(config.shard, "HORTATOR_SHARD");
  read(config.tensor, "HORTATOR_TENSOR");
  read(config.context, "HORTATOR_CONTEXT");
  read(config.pipeline, "HORTATOR_PIPELINE");
  return config;
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
  options.zero = sharding(options.zero, variables);
  options.parallel = axes(options.parallel, variables);
  if (const auto number = steps(variables)) options.gradient_accumulation_steps = *number;
  options.project = placed(options.project, variables);
  return options;
}

}  // namespace hortator::accelerator
