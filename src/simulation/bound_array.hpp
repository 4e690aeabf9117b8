#pragma once

#include <ATen/core/Tensor.h>
#include <hortator/hortator.h>

namespace hortator::simulation {

/// A tensor that is the caller's array: no copy. Arrays on the device are on `device`. Throws UsageError for an array
/// that LibTorch cannot show, and for one on the device if the run's device is the CPU.
at::Tensor bound_tensor(const hortator_array* array, c10::Device device);

}  // namespace hortator::simulation
