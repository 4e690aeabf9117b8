#include "comm/mpi/mpi_exchange.hpp"

#include <mpi.h>

#include <algorithm>
#include <vector>

namespace hortator::comm {
namespace {

// Calls post(begin, count) for consecutive ranges of `bytes`.
template <typename Post>
void for_each_piece(PeerBuffers::Bytes bytes, std::int64_t piece, const Post& post) {
  const auto most = static_cast<std::size_t>(piece);
  for (std::size_t begin = 0; begin < bytes.size; begin += most)
    post(bytes.data + begin, static_cast<int>(std::min(most, bytes.size - begin)));
}

}  // namespace

// Receives first: what arrives then has a buffer.
void exchange_by_mpi(const mpi::Communicator& comm, const PeerBuffers& buffers, std::int64_t piece,
                     const std::function<bool(int peer)>& includes) {
  std::vector<MPI_Request> requests;
  for (int peer = 0; peer < comm.size(); ++peer) {
    if (!includes(peer)) continue;
    for_each_piece(buffers.from(peer), piece, [&](std::byte* data, int count) {
      mpi::check(MPI_Irecv(data, count, MPI_BYTE, peer, 0, comm.get(), &requests.emplace_back()), "MPI_Irecv");
    });
  }
  for (int peer = 0; peer < comm.size(); ++peer) {
    if (!includes(peer)) continue;
    for_each_piece(buffers.to(peer), piece, [&](const std::byte* data, int count) {
      mpi::check(MPI_Isend(data, count, MPI_BYTE, peer, 0, comm.get(), &requests.emplace_back()), "MPI_Isend");
    });
  }
  mpi::check(MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE), "MPI_Waitall");
}

}  // namespace hortator::comm
