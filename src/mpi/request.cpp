#include "mpi/request.hpp"

#include "mpi/native.hpp"

namespace hortator::mpi {

static_assert(sizeof(MPI_Request) <= sizeof(Request) && alignof(MPI_Request) <= alignof(Request));

Request::Request() { *native(*this) = MPI_REQUEST_NULL; }

bool Request::is_complete() {
  int is_done = 0;
  check(MPI_Test(native(*this), &is_done, MPI_STATUS_IGNORE), "MPI_Test");
  return is_done != 0;
}

bool Request::is_none() const { return *native(const_cast<Request&>(*this)) == MPI_REQUEST_NULL; }

}  // namespace hortator::mpi
