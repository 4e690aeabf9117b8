#pragma once

#include <filesystem>
#include <hortator/accelerator.hpp>

#include "planning/machine.hpp"

namespace hortator::bench {

/// Measures what `hortator plan` needs to know of the machine, on all ranks at once: the slowest rank counts. What the
/// ranks of this run cannot measure is taken from what they can, with a warning on rank 0. `folder` is written to.
/// @collective
planning::Machine measure_machine(Accelerator& accelerator, const std::filesystem::path& folder);

}  // namespace hortator::bench
