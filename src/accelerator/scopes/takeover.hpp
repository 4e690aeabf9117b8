#pragma once

#include "accelerator/training/training.hpp"

namespace hortator::accelerator {

/// Gives all ranks what the loop of one rank has changed besides models: the optimizers' and schedules' states, the
/// count of micro-steps, the epoch of loaders, and registered objects that hold tensors (an average of the weights).
/// Random numbers, and objects that only hold numbers and text, stay each rank's own. @collective
void take_over_steps(Training& training, int rank);

}  // namespace hortator::accelerator
