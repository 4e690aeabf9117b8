#pragma once

#include <torch/optim/optimizer.h>

#include <memory>
#include <vector>

#include "simulation/sections/section.hpp"

namespace hortator::simulation {

/// Makes the optimizer that `optimizer:` of a model's section asks for; null if there is none. Throws UsageError for an
/// unknown type or option.
std::unique_ptr<torch::optim::Optimizer> make_optimizer(const Section& model,
                                                        const std::vector<at::Tensor>& parameters);

}  // namespace hortator::simulation
