#pragma once

#include <cstdint>

/// What this rank has asked of MPI since the start, counted by a layer between the library and MPI (traffic.cpp).
namespace hortator::scale {

struct Traffic {
  std::int64_t calls = 0;
  std::int64_t bytes = 0;  ///< that were handed to MPI or came back, by the calls' arguments
};

Traffic traffic();

/// From now on MPI seems to run on nodes of so many ranks each.
void pretend_nodes_of(int ranks);

}  // namespace hortator::scale
