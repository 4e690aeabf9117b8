#pragma once

#include <concepts>

#include "mpi/agree.hpp"

namespace hortator::simulation {

/// The exception in flight as a rank's contribution to an agreement, without LibTorch's backtraces.
mpi::LocalOutcome current_outcome();

/// Runs work that may fail on this rank only.
template <std::invocable Work>
mpi::LocalOutcome attempt(Work&& work) {
  try {
    work();
    return {};
  } catch (...) {
    return current_outcome();
  }
}

/// Runs work that may fail on this rank; then it has succeeded on all ranks, or all throw the same error. @collective
template <std::invocable Work>
void all_succeed(const mpi::Communicator& comm, Work&& work) {
  mpi::agree(comm, attempt(work));
}

}  // namespace hortator::simulation
