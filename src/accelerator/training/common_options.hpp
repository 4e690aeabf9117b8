#pragma once

#include <hortator/training/accelerator_options.hpp>

#include "mpi/communicator.hpp"

namespace hortator::accelerator {

/// Throws on all ranks unless they have the same options: those that decide what the ranks send to each other, and what
/// they compute from it. The error names the first option that differs. Files and trackers are rank 0's, and paths may
/// differ. One reduction of 16 bytes where all are equal. @collective
void require_common(const AcceleratorOptions& options, const mpi::Communicator& host);

}  // namespace hortator::accelerator
