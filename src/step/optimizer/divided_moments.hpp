#pragma once

#include <torch/optim/optimizer.h>

#include "parallel/tensor/divided_module.hpp"

namespace hortator::step {

/// Cuts what an optimizer remembers of divided parameters as a whole down to this rank's parts: its state is from
/// before the model was divided, or was read from files. Leaves what is a part already. Local.
void divide_moments(torch::optim::Optimizer& optimizer, const parallel::DividedModule& divided);

}  // namespace hortator::step
