#pragma once

#include <hortator/training/accelerator_options.hpp>
#include <string>
#include <utility>
#include <vector>

#include "mpi/communicator.hpp"

namespace hortator::accelerator {

/// Names of values, and the values as texts.
using NamedValues = std::vector<std::pair<std::string, std::string>>;

/// Throws on all ranks unless they have the same options, except those whose row says `local`, and the same
/// `variables`: values that are not options. The error names the first that differs, and two values. One reduction of
/// 16 bytes where all are equal. @collective
void require_common(const AcceleratorOptions& options, const NamedValues& variables, const mpi::Communicator& host);

}  // namespace hortator::accelerator
