#pragma once

#include <string>

#include "mpi/communicator.hpp"

namespace hortator::runtime {

/// The version of the loaded LibTorch, for example "2.15.0". It may differ from the one compiled against.
std::string libtorch_version();

/// The identity that all ranks must share: "hortator 0.1.0 (build 2a2f4d8c), LibTorch 2.15.0 (commit 1f6d2fe), Open MPI
/// v4.1.4". The build is the linker's build id of this library; without one only versions are compared.
std::string build_identity();

/// Throws on all ranks unless all run the same build with the same libraries. One small reduction. @collective
void check_same_build(const mpi::Communicator& comm, const std::string& identity = build_identity());

}  // namespace hortator::runtime
