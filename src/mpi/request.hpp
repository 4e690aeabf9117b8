#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace hortator::mpi {

/// An operation of MPI under way, or none.
class Request {
 public:
  Request();

  /// Whether it has ended; then there is none any more. Does not wait.
  bool is_complete();
  bool is_none() const;

  std::byte* memory() { return memory_.data(); }  ///< of MPI's own request: native.hpp

 private:
  alignas(std::uint64_t) std::array<std::byte, sizeof(std::uint64_t)> memory_ = {};
};

}  // namespace hortator::mpi
