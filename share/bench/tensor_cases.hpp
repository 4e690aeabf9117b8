#pragma once

#include <vector>

#include "bench/measurements.hpp"

namespace hortator::bench {

/// Operators on divided tensors beside the same ones on ordinary tensors, on one rank. Local.
std::vector<Result> tensor_operators(const Plan& plan);

/// A step of a transformer whose layers are divided among all ranks beside one of the whole model on each rank.
/// @collective
Result tensor_step(const Accelerator& accelerator, const Plan& plan, bool sequence);

}  // namespace hortator::bench
