#include "comm/shm/pending_transfer.hpp"

#include <algorithm>

namespace hortator::comm {
namespace {

constexpr std::size_t max_blocks = 4;

}  // namespace

bool PendingTransfer::advance() {
  while (advance_once()) {
  }
  return next_ == route_.elements && blocks_.empty();
}

bool PendingTransfer::advance_once() {
  bool moved = false;
  if (next_ < route_.elements && blocks_.size() < max_blocks) {
    const auto count = std::min(route_.per_block, route_.elements - next_);
    auto& block = blocks_.emplace_back(Block{.begin = next_, .count = count});
    next_ += count;
    route_.send(block);
    moved = true;
  }
  for (auto& block : blocks_) {
    if (block.is_received) continue;
    if (!block.request.is_complete()) break;  // on_received must be called in the order of the blocks
    block.is_received = true;
    route_.on_received(block);
    moved = true;
  }
  while (!blocks_.empty() && blocks_.front().is_received && blocks_.front().request.is_complete()) {
    route_.publish(blocks_.front());
    blocks_.pop_front();
    moved = true;
  }
  return moved;
}

}  // namespace hortator::comm
