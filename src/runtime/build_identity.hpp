#pragma once

#include <string>

#include "mpi/communicator.hpp"

namespace hortator::runtime {

/// The version of the LibTorch that is loaded, which need not be the one compiled against: "2.15.0".
std::string libtorch_version();

/// What must be the same on all ranks: "hortator 0.1.0 (build 2a2f4d8c), LibTorch 2.15.0 (commit 1f6d2fe), Open MPI
/// v4.1.4". The build is what the linker has signed this library with; without such a signature only versions are
/// compared.
std::string build_identity();

/// Throws, on all ranks, unless all run the same build on the same libraries. One small reduction. @collective
void check_same_build(const mpi::Communicator& comm, const std::string& identity = build_identity());

}  // namespace hortator::runtime
