#include "comm/shm/pending_transfer.hpp"

#include <algorithm>

#include "mpi/error.hpp"

namespace hortator::comm {
namespace {

constexpr std::size_t blocks_on_their_way = 4;

bool is_complete(MPI_Request& request) {
  int done = 0;
  mpi::check(MPI_Test(&request, &done, MPI_STATUS_IGNORE), "MPI_Test");
  return done != 0;
}

}  // namespace

bool PendingTransfer::advance() {
  while (move_on()) {
  }
  return next_ == route_.elements && blocks_.empty();
}

// True if anything has moved.
bool PendingTransfer::move_on() {
  bool moved = false;
  if (next_ < route_.elements && blocks_.size() < blocks_on_their_way) {
    const auto count = std::min(route_.per_block, route_.elements - next_);
    auto& block = blocks_.emplace_back(Block{.begin = next_, .count = count});
    next_ += count;
    route_.send(block);
    moved = true;
  }
  for (auto& block : blocks_) {
    if (block.has_come) continue;
    if (!is_complete(block.request)) break;  // what is sent again goes in the blocks' order
    block.has_come = true;
    route_.take_in(block);
    moved = true;
  }
  while (!blocks_.empty() && blocks_.front().has_come && is_complete(blocks_.front().request)) {
    route_.publish(blocks_.front());
    blocks_.pop_front();
    moved = true;
  }
  return moved;
}

}  // namespace hortator::comm
