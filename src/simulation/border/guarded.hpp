#pragma once

#include <hortator/hortator.h>

#include <concepts>
#include <string>

#include "machine/cpu/openmp_threads.hpp"

namespace hortator::simulation {

/// Stores the text of this thread's last failure, for hortator_last_error(). Never throws.
void store_error(const std::string& text) noexcept;

/// The status of the exception in flight, whose text is stored. Never throws.
hortator_status status_of_exception() noexcept;

/// Throws UsageError where MPI was finalised: a collective would end the program.
void require_mpi();

/// Runs `work`, which returns a status or throws: no exception passes the border to C, and the program's number of
/// OpenMP threads is what it was.
template <std::invocable Work>
hortator_status guarded(Work&& work) noexcept {
  const machine::OpenmpThreads of_the_program;
  try {
    return work();
  } catch (...) {
    return status_of_exception();
  }
}

/// The same for work that communicates.
template <std::invocable Work>
hortator_status guarded_collective(Work&& work) noexcept {
  return guarded([&] {
    require_mpi();
    return work();
  });
}

}  // namespace hortator::simulation
