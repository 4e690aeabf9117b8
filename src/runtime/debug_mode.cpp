#include "runtime/debug_mode.hpp"

namespace hortator::runtime {

bool asked_for_debug_mode(const core::Variables& variables) {
  return core::yes_or_no(variables, "HORTATOR_DEBUG", "set it to 1 for checks of every collective, or unset it")
      .value_or(false);
}

}  // namespace hortator::runtime
