#include "accelerator/interop/accelerate/sharding_variables.hpp"

#include <array>
#include <hortator/error.hpp>
#include <string>
#include <string_view>

#include "core/text/text.hpp"

namespace hortator::accelerator {
namespace {

using core::SetVariable;

bool is_true(const core::Variables& variables, const char* name) {
  return core::yes_or_no(variables, name, "set it to true or false").value_or(false);
}

// FSDP's strategies have numbers from 1, which are not stages.
std::string strategy_name(const std::string& value) {
  constexpr std::array<std::string_view, 5> names = {"FULL_SHARD", "SHARD_GRAD_OP", "NO_SHARD", "HYBRID_SHARD",
                                                     "HYBRID_SHARD_ZERO2"};
  long long number = 0;
  if (!text::parse_integer(value, number)) return value;
  if (number >= 1 && number <= static_cast<long long>(names.size()))
    return std::string(names[static_cast<std::size_t>(number - 1)]);
  throw UsageError({.what = text::concat("FSDP_SHARDING_STRATEGY is ", text::quote(value)),
                    .hint = "set it to a number from 1 to 5, or to one of " + text::join(names)});
}

// FSDP 2 has a bool in the place of the strategy.
SetVariable fsdp_sharding(const core::Variables& variables) {
  const char* reshard = "FSDP_RESHARD_AFTER_FORWARD";
  const auto value = variables(reshard);
  const bool is_second = variables("FSDP_VERSION") == "2";
  if (const auto keeps = value ? text::parse_bool(*value) : std::nullopt; is_second && (keeps || !value))
    return {reshard, keeps.value_or(true) ? "FULL_SHARD" : "SHARD_GRAD_OP"};
  const auto strategy = core::first_set(variables, {"FSDP_SHARDING_STRATEGY"});
  if (!strategy) return {"FSDP_SHARDING_STRATEGY", "FULL_SHARD"};
  return {strategy->name, strategy_name(strategy->value)};
}

}  // namespace

std::optional<SetVariable> accelerate_sharding(const core::Variables& variables) {
  if (is_true(variables, "ACCELERATE_USE_FSDP")) return fsdp_sharding(variables);
  if (!is_true(variables, "ACCELERATE_USE_DEEPSPEED")) return std::nullopt;
  constexpr auto name = "ACCELERATE_DEEPSPEED_ZERO_STAGE";
  return SetVariable{name, variables(name).value_or("2")};
}

}  // namespace hortator::accelerator
