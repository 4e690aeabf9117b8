#pragma once

namespace hortator::runtime {

/// From now on set_seed() with device_specific gives each `ranks` consecutive ranks one seed: those that compute the
/// same batches.
void draw_together(int ranks);

}  // namespace hortator::runtime
