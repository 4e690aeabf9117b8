#pragma once

namespace hortator::accelerator {

class Training;

/// Forgets what was prepared, but optimizers keep all that they remember; memory goes back to the device. @collective
void free_memory(Training& training);

}  // namespace hortator::accelerator
