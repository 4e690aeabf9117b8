// Preloaded. Makes the results of large reductions wrong.
#include <mpi.h>

namespace {

// Flips one bit of the result on rank 0.
void spoil(void* data, int count, MPI_Comm comm) {
  int rank = 0;
  PMPI_Comm_rank(comm, &rank);
  if (rank == 0 && count > 1000) static_cast<char*>(data)[0] ^= 0x10;
}

}  // namespace

extern "C" {

int MPI_Allreduce(const void* in, void* out, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  const int code = PMPI_Allreduce(in, out, count, type, op, comm);
  spoil(out, count, comm);
  return code;
}

}  // extern "C"
