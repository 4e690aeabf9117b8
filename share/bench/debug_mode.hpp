#pragma once

#include <vector>

#include "bench/measurements.hpp"

namespace hortator::bench {

/// Compares collectives on a host value and on tensors in debug mode with the same ones without it. @collective
std::vector<Result> debug_mode(Accelerator& accelerator, const Plan& plan);

}  // namespace hortator::bench
