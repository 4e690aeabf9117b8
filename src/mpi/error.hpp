#pragma once

#include <hortator/error.hpp>
#include <source_location>
#include <string_view>

namespace hortator::mpi {

class MpiError : public Error {
 public:
  using Error::Error;
};

/// Throws MpiError with MPI's own message unless `code` is MPI_SUCCESS.
void check(int code, std::string_view operation, std::source_location where = std::source_location::current());

}  // namespace hortator::mpi
