#pragma once

#include <c10/core/Device.h>

#include "core/environment/environment.hpp"

namespace hortator::runtime {

/// Where HORTATOR_DEBUG_STREAMS is true, checks until the process ends that all uses of the device's memory are in
/// order (machine/races/stream_watch.hpp). Each finding is logged; hortator::run ends with an error after the first.
/// Throws if the variable is neither true nor false, and if it is true where there is no device. Training on the CPU
/// where there is one is not checked, which is logged.
void check_streams_if_asked(c10::Device device, const core::Variables& variables);

}  // namespace hortator::runtime
