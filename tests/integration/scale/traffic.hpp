#pragma once

#include <cstdint>

/// Counts this rank's MPI calls since the start, in a layer between the library and MPI (traffic.cpp).
namespace hortator::scale {

struct Traffic {
  std::int64_t calls = 0;
  std::int64_t bytes = 0;  ///< passed to or returned by MPI, from the calls' arguments
};

Traffic traffic();

/// From now on MPI_Comm_split_type simulates nodes of `ranks` ranks each.
void pretend_nodes_of(int ranks);

}  // namespace hortator::scale
