#include "traffic.hpp"

#include <mpi.h>

#include <atomic>
#include <numeric>

// Uses MPI's profiling interface: these definitions replace MPI's, also for the library, and call them by their PMPI
// names. A call counts once, with the size of all buffers in its arguments: N parts for an all_gather over N ranks, one
// for a broadcast, whatever MPI does internally. MPI_Comm_split counts a color and a key, 8 bytes. measure.sh checks
// that the library makes only calls that are defined here, or are local.
namespace hortator::scale {
namespace {

std::atomic<std::int64_t> calls = 0;
std::atomic<std::int64_t> bytes = 0;
int ranks_a_node = 0;  // 0: MPI's own nodes

std::int64_t size_of(MPI_Datatype type, std::int64_t count) {
  int size = 0;
  PMPI_Type_size(type, &size);
  return count * size;
}

int ranks_of(MPI_Comm comm) {
  int ranks = 0;
  PMPI_Comm_size(comm, &ranks);
  return ranks;
}

bool is_root(MPI_Comm comm, int root) {
  int rank = 0;
  PMPI_Comm_rank(comm, &rank);
  return rank == root;
}

std::int64_t sum_of(const int counts[], MPI_Comm comm) {
  return std::accumulate(counts, counts + ranks_of(comm), std::int64_t{0});
}

void count(std::int64_t moved) {
  ++calls;
  bytes += moved;
}

}  // namespace

Traffic traffic() { return {.calls = calls, .bytes = bytes}; }

void pretend_nodes_of(int ranks) { ranks_a_node = ranks; }

}  // namespace hortator::scale

using namespace hortator::scale;

extern "C" {

int MPI_Barrier(MPI_Comm comm) {
  count(0);
  return PMPI_Barrier(comm);
}

int MPI_Bcast(void* buffer, int n, MPI_Datatype type, int root, MPI_Comm comm) {
  count(size_of(type, n));
  return PMPI_Bcast(buffer, n, type, root, comm);
}

int MPI_Allreduce(const void* in, void* out, int n, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  count(2 * size_of(type, n));
  return PMPI_Allreduce(in, out, n, type, op, comm);
}

int MPI_Exscan(const void* in, void* out, int n, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  count(2 * size_of(type, n));
  return PMPI_Exscan(in, out, n, type, op, comm);
}

int MPI_Reduce(const void* in, void* out, int n, MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm) {
  count((is_root(comm, root) ? 2 : 1) * size_of(type, n));
  return PMPI_Reduce(in, out, n, type, op, root, comm);
}

int MPI_Reduce_scatter_block(const void* in, void* out, int n, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  count(size_of(type, n) * (ranks_of(comm) + 1));
  return PMPI_Reduce_scatter_block(in, out, n, type, op, comm);
}

int MPI_Allgather(const void* in, int n, MPI_Datatype type, void* out, int n_out, MPI_Datatype type_out,
                  MPI_Comm comm) {
  count(size_of(type, n) + size_of(type_out, n_out) * ranks_of(comm));
  return PMPI_Allgather(in, n, type, out, n_out, type_out, comm);
}

int MPI_Allgatherv(const void* in, int n, MPI_Datatype type, void* out, const int counts[], const int offsets[],
                   MPI_Datatype type_out, MPI_Comm comm) {
  count(size_of(type, n) + size_of(type_out, sum_of(counts, comm)));
  return PMPI_Allgatherv(in, n, type, out, counts, offsets, type_out, comm);
}

int MPI_Gather(const void* in, int n, MPI_Datatype type, void* out, int n_out, MPI_Datatype type_out, int root,
               MPI_Comm comm) {
  count(size_of(type, n) + (is_root(comm, root) ? size_of(type_out, n_out) * ranks_of(comm) : 0));
  return PMPI_Gather(in, n, type, out, n_out, type_out, root, comm);
}

int MPI_Gatherv(const void* in, int n, MPI_Datatype type, void* out, const int counts[], const int offsets[],
                MPI_Datatype type_out, int root, MPI_Comm comm) {
  count(size_of(type, n) + (is_root(comm, root) ? size_of(type_out, sum_of(counts, comm)) : 0));
  return PMPI_Gatherv(in, n, type, out, counts, offsets, type_out, root, comm);
}

int MPI_Scatterv(const void* in, const int counts[], const int offsets[], MPI_Datatype type, void* out, int n,
                 MPI_Datatype type_out, int root, MPI_Comm comm) {
  count(size_of(type_out, n) + (is_root(comm, root) ? size_of(type, sum_of(counts, comm)) : 0));
  return PMPI_Scatterv(in, counts, offsets, type, out, n, type_out, root, comm);
}

int MPI_Sendrecv(const void* in, int n_in, MPI_Datatype type_in, int to, int tag_in, void* out, int n,
                 MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Status* status) {
  count(size_of(type_in, n_in) + size_of(type, n));
  return PMPI_Sendrecv(in, n_in, type_in, to, tag_in, out, n, type, from, tag, comm, status);
}

int MPI_Send(const void* in, int n, MPI_Datatype type, int to, int tag, MPI_Comm comm) {
  count(size_of(type, n));
  return PMPI_Send(in, n, type, to, tag, comm);
}

int MPI_Recv(void* out, int n, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Status* status) {
  count(size_of(type, n));
  return PMPI_Recv(out, n, type, from, tag, comm, status);
}

int MPI_Isend(const void* in, int n, MPI_Datatype type, int to, int tag, MPI_Comm comm, MPI_Request* request) {
  count(size_of(type, n));
  return PMPI_Isend(in, n, type, to, tag, comm, request);
}

int MPI_Irecv(void* out, int n, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Request* request) {
  count(size_of(type, n));
  return PMPI_Irecv(out, n, type, from, tag, comm, request);
}

int MPI_Alltoallv(const void* in, const int counts_in[], const int offsets_in[], MPI_Datatype type_in, void* out,
                  const int counts[], const int offsets[], MPI_Datatype type, MPI_Comm comm) {
  count(size_of(type_in, sum_of(counts_in, comm)) + size_of(type, sum_of(counts, comm)));
  return PMPI_Alltoallv(in, counts_in, offsets_in, type_in, out, counts, offsets, type, comm);
}

int MPI_Alltoall(const void* in, int n, MPI_Datatype type, void* out, int n_out, MPI_Datatype type_out, MPI_Comm comm) {
  count((size_of(type, n) + size_of(type_out, n_out)) * ranks_of(comm));
  return PMPI_Alltoall(in, n, type, out, n_out, type_out, comm);
}

int MPI_Ialltoallv(const void* in, const int counts_in[], const int offsets_in[], MPI_Datatype type_in, void* out,
                   const int counts[], const int offsets[], MPI_Datatype type, MPI_Comm comm, MPI_Request* request) {
  count(size_of(type_in, sum_of(counts_in, comm)) + size_of(type, sum_of(counts, comm)));
  return PMPI_Ialltoallv(in, counts_in, offsets_in, type_in, out, counts, offsets, type, comm, request);
}

int MPI_Ialltoall(const void* in, int n, MPI_Datatype type, void* out, int n_out, MPI_Datatype type_out, MPI_Comm comm,
                  MPI_Request* request) {
  count((size_of(type, n) + size_of(type_out, n_out)) * ranks_of(comm));
  return PMPI_Ialltoall(in, n, type, out, n_out, type_out, comm, request);
}

int MPI_Iallreduce(const void* in, void* out, int n, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                   MPI_Request* request) {
  count(2 * size_of(type, n));
  return PMPI_Iallreduce(in, out, n, type, op, comm, request);
}

int MPI_Iallgather(const void* in, int n, MPI_Datatype type, void* out, int n_out, MPI_Datatype type_out, MPI_Comm comm,
                   MPI_Request* request) {
  count(size_of(type, n) + size_of(type_out, n_out) * ranks_of(comm));
  return PMPI_Iallgather(in, n, type, out, n_out, type_out, comm, request);
}

// With MPI_IN_PLACE the rank's own part is already in the output.
int MPI_Iallgatherv(const void* in, int n, MPI_Datatype type, void* out, const int counts[], const int offsets[],
                    MPI_Datatype type_out, MPI_Comm comm, MPI_Request* request) {
  count((in == MPI_IN_PLACE ? 0 : size_of(type, n)) + size_of(type_out, sum_of(counts, comm)));
  return PMPI_Iallgatherv(in, n, type, out, counts, offsets, type_out, comm, request);
}

int MPI_Comm_dup(MPI_Comm comm, MPI_Comm* made) {
  count(0);
  return PMPI_Comm_dup(comm, made);
}

int MPI_Comm_create_group(MPI_Comm comm, MPI_Group group, int tag, MPI_Comm* made) {
  count(0);
  return PMPI_Comm_create_group(comm, group, tag, made);
}

int MPI_Comm_split(MPI_Comm comm, int color, int key, MPI_Comm* made) {
  count(2 * sizeof(int));
  return PMPI_Comm_split(comm, color, key, made);
}

int MPI_Comm_split_type(MPI_Comm comm, int kind, int key, MPI_Info info, MPI_Comm* made) {
  count(2 * sizeof(int));
  if (kind != MPI_COMM_TYPE_SHARED || ranks_a_node == 0) return PMPI_Comm_split_type(comm, kind, key, info, made);
  int rank = 0;
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return PMPI_Comm_split(comm, rank / ranks_a_node, key, made);
}
}
