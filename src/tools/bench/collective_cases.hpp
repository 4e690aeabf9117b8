#pragma once

#include <c10/core/ScalarType.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "comm/communicator.hpp"
#include "mpi/communicator.hpp"

namespace hortator::tools::bench {

/// One collective on buffers that are ready: the whole buffer has `bytes` on each rank, whatever the operation.
struct CollectiveCase {
  std::string operation;
  std::string memory;  ///< "window": from allocate(); "own": the rank's own
  std::function<void()> run;
  double bus_factor = 1;  ///< bytes that cross the slowest link, a byte of the buffer
};

/// All collectives on `elements` of `type`, in every kind of memory that `comm` offers; `comm` must outlive them.
/// @collective
std::vector<CollectiveCase> collective_cases(comm::Communicator& comm, std::int64_t elements, at::ScalarType type);

/// A communicator of the back end that `--backend` names, over the ranks of `world`. @collective
std::unique_ptr<comm::Communicator> communicator_named(const std::string& backend, const mpi::Communicator& world);

/// The type that `--type` names.
at::ScalarType type_named(const std::string& name);

/// As many calls a block as move 128 MiB, at least two, at most `most`.
int steps_for(std::int64_t bytes, int most);

/// As many elements of `type` as `bytes` hold, the same number for each of `ranks`.
std::int64_t elements_of(std::int64_t bytes, at::ScalarType type, int ranks);

}  // namespace hortator::tools::bench
