#include "runtime/debug_mode.hpp"

namespace hortator::runtime {

bool asked_for_debug_mode(const core::Variables& variables) {
  const auto asked = core::first_set(variables, {"HORTATOR_DEBUG", "ACCELERATE_DEBUG_MODE"});
  return asked && core::yes_or_no(variables, asked->name, "set it to 1 for checks of every collective, or unset it")
                      .value_or(false);
}

}  // namespace hortator::runtime
