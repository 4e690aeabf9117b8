#include "comm/mpi/mpi_exchange.hpp"

#include "mpi/native.hpp"

#include <algorithm>
#include <utility>

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
MpiExchange::MpiExchange(const mpi::Communicator& comm, std::shared_ptr<const PeerBuffers> buffers, std::int64_t piece,
                         const std::function<bool(int peer)>& includes)
    : buffers_(std::move(buffers)) {
  for (int peer = 0; peer < comm.size(); ++peer) {
    if (!includes(peer)) continue;
    for_each_piece(buffers_->from(peer), piece, [&](std::byte* data, int count) {
      mpi::check(MPI_Irecv(data, count, MPI_BYTE, peer, 0, mpi::native(comm), &requests_.emplace_back()), "MPI_Irecv");
    });
  }
  for (int peer = 0; peer < comm.size(); ++peer) {
    if (!includes(peer)) continue;
    for_each_piece(buffers_->to(peer), piece, [&](const std::byte* data, int count) {
      mpi::check(MPI_Isend(data, count, MPI_BYTE, peer, 0, mpi::native(comm), &requests_.emplace_back()), "MPI_Isend");
    });
  }
}

MpiExchange::~MpiExchange() {
  if (!requests_.empty()) new std::shared_ptr<const PeerBuffers>(std::move(buffers_));
}

void MpiExchange::wait() {
  if (!requests_.empty())
    mpi::check(MPI_Waitall(static_cast<int>(requests_.size()), requests_.data(), MPI_STATUSES_IGNORE), "MPI_Waitall");
  requests_.clear();  // after a failure the destructor keeps the buffers, which MPI may still use
  buffers_->unpack();
}

}  // namespace hortator::comm
