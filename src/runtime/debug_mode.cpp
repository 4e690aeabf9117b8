#include "runtime/debug_mode.hpp"

#include "core/environment/setting_key.hpp"

namespace hortator::runtime {

bool asked_for_debug_mode(const core::Variables& variables) {
  const auto asked = core::first_set(variables, {"HORTATOR_DEBUG", "ACCELERATE_DEBUG_MODE"});
  return asked && core::read_onoff(core::program_setting("debug"), *asked);
}

}  // namespace hortator::runtime
