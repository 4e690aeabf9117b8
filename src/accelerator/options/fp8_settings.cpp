#include "accelerator/options/fp8_settings.hpp"

#include <hortator/error.hpp>
#include <optional>
#include <string_view>

#include "core/environment/setting_key.hpp"
#include "core/text/text.hpp"

namespace hortator::accelerator {
namespace {

std::optional<core::SetVariable> set_variable(std::string_view name, const core::Variables& variables) {
  return core::first_set(variables, {core::variable_of(core::program_setting(name)).c_str()});
}

/// The number of the choice, 0 by default.
std::size_t choice(std::string_view name, const core::Variables& variables) {
  const auto set = set_variable(name, variables);
  return set ? core::read_choice(core::program_setting(name), *set) : 0;
}

}  // namespace

Fp8Options fp8_settings(const core::Variables& variables) {
  Fp8Options options;
  if (choice("fp8_scaling", variables) == 1) options.scaling = Fp8Scaling::delayed;
  if (choice("fp8_format", variables) == 1) options.format = Fp8Format::e4m3;
  options.amax_most_recent = choice("fp8_amax_compute_algo", variables) == 0;
  if (const auto set = set_variable("fp8_amax_history_len", variables))
    options.amax_history_length = core::read_count(core::program_setting("fp8_amax_history_len"), *set);
  if (const auto set = set_variable("fp8_margin", variables)) {
    constexpr int most = 16;  // values of 8 bits have no more room
    const auto margin = core::parse_whole_number(set->value, 0);
    if (!margin || *margin > most)
      throw UsageError({.what = text::concat(set->name, ": expected a whole number from 0 to ", most, ", got ",
                                             text::quote(set->value))});
    options.margin = *margin;
  }
  if (const auto set = set_variable("fp8_use_autocast_during_eval", variables))
    options.during_evaluation = core::read_onoff(core::program_setting("fp8_use_autocast_during_eval"), *set);
  return options;
}

}  // namespace hortator::accelerator
