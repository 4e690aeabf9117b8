#pragma once

#include <mpi.h>

#include <cstdint>
#include <cstring>

#include "mpi/communicator.hpp"
#include "mpi/request.hpp"

/// MPI's own types. Their sizes and values differ between MPIs, so that only sources that are compiled once for each
/// MPI include this header (share/doc/architecture.md, "One build for several MPIs").
namespace hortator::mpi {

/// A handle of MPI as a number that any of them fits into, and back.
template <typename Handle>
std::uint64_t as_number(Handle handle) {
  static_assert(sizeof(Handle) <= sizeof(std::uint64_t));
  std::uint64_t number = 0;
  std::memcpy(&number, &handle, sizeof handle);
  return number;
}

template <typename Handle>
Handle as_handle(std::uint64_t number) {
  Handle handle;
  std::memcpy(&handle, &number, sizeof handle);
  return handle;
}

inline MPI_Comm native(const Communicator& comm) { return as_handle<MPI_Comm>(comm.number()); }
inline MPI_Request* native(Request& request) { return reinterpret_cast<MPI_Request*>(request.memory()); }

/// A duplicate of any communicator. Throws UsageError for one that is null or joins two groups. Starts a family.
/// @collective
inline Communicator duplicate_of(MPI_Comm other) { return Communicator::of_number(as_number(other)); }

}  // namespace hortator::mpi
