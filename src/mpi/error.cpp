#include "mpi/error.hpp"

#include <mpi.h>

#include <array>

#include "core/text/text.hpp"

namespace hortator::mpi {

void check(int code, std::string_view operation, std::source_location where) {
  if (code == MPI_SUCCESS) return;
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int length = 0;
  MPI_Error_string(code, text.data(), &length);
  throw MpiError({.what = text::concat(operation, " failed: ", text.data()),
                  .why = "the ranks are no longer in step",
                  .hint = "the job has to be started again; see the messages of MPI above"},
                 where);
}

}  // namespace hortator::mpi
