#pragma once

#include <ATen/core/Tensor.h>
#include <hortator/hortator.h>

namespace hortator::simulation {

/// A tensor that is the caller's array: no copy. Throws UsageError for an array that LibTorch cannot show.
at::Tensor bound_tensor(const hortator_array* array);

}  // namespace hortator::simulation
