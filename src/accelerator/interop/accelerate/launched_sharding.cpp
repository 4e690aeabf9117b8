#include "accelerator/interop/accelerate/launched_sharding.hpp"

#include <hortator/error.hpp>

#include "accelerator/interop/accelerate/sharding_variables.hpp"
#include "core/environment/setting_key.hpp"

namespace hortator::accelerator {

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
    core::throw_unexpected(core::program_setting("zero_stage"), set->value, set->name + ": ");
  }
  return config;
}

std::optional<double> automatic_clipping(const core::Variables& variables) {
  auto set = core::first_set(variables, {"HORTATOR_GRADIENT_CLIPPING"});
  if (!set || set->value == "auto") set = accelerate_clipping(variables);
  if (!set) return 1;
  const double norm = core::read_amount(core::program_setting("gradient_clipping"), *set);
  return norm > 0 ? std::optional(norm) : std::nullopt;
}

}  // namespace hortator::accelerator
