#include "step/random_state.hpp"

#include <algorithm>

#include "machine/device/device.hpp"
#include "runtime/generator_state.hpp"

namespace hortator::step {
namespace {

std::pair<c10::Device, at::Tensor> state_on(c10::Device device) {
  return {device, runtime::generator_state(runtime::default_generator(device))};
}

}  // namespace

RandomState RandomState::current(const std::vector<at::Tensor>& on_devices_of) {
  RandomState state;
  state.states_.push_back(state_on(at::kCPU));
  for (const auto& tensor : on_devices_of) {
    if (!tensor.defined() || machine::kind_of(tensor.device()) == nullptr) continue;
    const auto is_same_device = [&](const auto& known) { return known.first == tensor.device(); };
    if (std::none_of(state.states_.begin(), state.states_.end(), is_same_device)) {
      state.states_.push_back(state_on(tensor.device()));
    }
  }
  return state;
}

RandomState RandomState::refreshed() const {
  RandomState state;
  for (const auto& [device, bytes] : states_) state.states_.push_back(state_on(device));
  return state;
}

void RandomState::apply() const {
  for (const auto& [device, bytes] : states_) {
    runtime::set_generator_state(runtime::default_generator(device), bytes);
  }
}

}  // namespace hortator::step
