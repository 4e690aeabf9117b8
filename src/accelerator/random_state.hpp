#pragma once

#include <c10/core/Device.h>

#include <hortator/state_dict.hpp>

namespace hortator::accelerator {

/// The states of this process's random number generators, of the CPU and of `device`, and back.
StateDict random_state(c10::Device device);
void restore_random_state(c10::Device device, const StateDict& state);

}  // namespace hortator::accelerator
