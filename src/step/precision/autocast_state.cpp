#include "step/precision/autocast_state.hpp"

#include <ATen/autocast_mode.h>

namespace hortator::step {

namespace autocast = at::autocast;

AutocastState AutocastState::current() {
  AutocastState state;
  for (const auto device : autocast::_AUTOCAST_SUPPORTED_DEVICES) {
    state.devices_.push_back({.device = device,
                              .enabled = autocast::is_autocast_enabled(device),
                              .type = autocast::get_autocast_dtype(device)});
  }
  state.cache_ = autocast::is_autocast_cache_enabled();
  return state;
}

void AutocastState::apply() const {
  for (const auto& [device, enabled, type] : devices_) {
    autocast::set_autocast_enabled(device, enabled);
    autocast::set_autocast_dtype(device, type);
  }
  autocast::set_autocast_cache_enabled(cache_);
}

AutocastScope::AutocastScope(const AutocastState& state) {
  autocast::increment_nesting();
  state.apply();
}

AutocastScope::~AutocastScope() {
  if (autocast::decrement_nesting() == 0) autocast::clear_cache();
  before_.apply();
}

}  // namespace hortator::step
