#pragma once

#include <vector>

#include "bench/measurements.hpp"

namespace hortator::bench {

/// Times operators on divided tensors beside the same ones on ordinary tensors, on one rank. Local.
std::vector<Result> tensor_operators(const Plan& plan);

}  // namespace hortator::bench
