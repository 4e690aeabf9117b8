#pragma once

#include <c10/core/ScalarType.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "comm/communicator.hpp"
#include "mpi/communicator.hpp"

namespace hortator::bench {

/// One collective on prepared buffers. The whole buffer has the same size on each rank for every operation.
struct CollectiveCase {
  std::string operation;
  std::string memory;  ///< "window": from allocate(); "own": ordinary memory
  std::function<void()> run;
  double bus_factor = 1;  ///< bytes that cross the slowest link for each byte of the buffer
};

/// All collectives on `elements` elements of `type`, in each kind of memory of `comm`, which must outlive them.
/// @collective
std::vector<CollectiveCase> collective_cases(comm::Communicator& comm, std::int64_t elements, at::ScalarType type);

/// A communicator of the back end given by --backend, over the ranks of `world`. @collective
std::unique_ptr<comm::Communicator> communicator_named(const std::string& backend, const mpi::Communicator& world);

/// The type given by --type.
at::ScalarType type_named(const std::string& name);

/// Calls per block: enough to move 128 MiB, at least two, at most `max`.
int steps_for(std::int64_t bytes, int max);

/// The number of elements of `type` in `bytes`, rounded to a multiple of `ranks`.
std::int64_t elements_of(std::int64_t bytes, at::ScalarType type, int ranks);

}  // namespace hortator::bench
