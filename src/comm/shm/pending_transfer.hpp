#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "mpi/request.hpp"

namespace hortator::comm {

/// The range of bytes that belongs to each node, as MPI takes it.
struct NodeRanges {
  std::vector<int> counts = {};
  std::vector<int> offsets = {};

  void add(int offset, int count) {
    offsets.push_back(offset);
    counts.push_back(count);
  }
};

/// A transfer of data between nodes in the background, block by block. It progresses in calls to advance(), which never
/// wait.
class PendingTransfer {
 public:
  static constexpr std::int64_t block_bytes = 1 << 20;

  struct Block {
    std::int64_t begin = 0;  ///< in elements
    std::int64_t count = 0;
    std::vector<std::byte> packed = {};    ///< what is sent, unless it is sent from where it lies
    std::vector<std::byte> received = {};  ///< from all nodes
    NodeRanges sent = {};                  ///< in bytes
    NodeRanges kept = {};                  ///< the same in `received`
    mpi::Request request = {};
    bool is_received = false;
  };
  /// How each block travels.
  struct Route {
    std::int64_t elements = 0;
    std::int64_t per_block = 1;
    std::function<void(Block&)> send = {};  ///< called in the order of the blocks; starts the request
    std::function<void(Block&)> on_received =
        {};  ///< called in the order of the blocks when the request is complete; may start another
    std::function<void(const Block&)> publish = {};        ///< the block is complete
    std::vector<std::shared_ptr<const void>> memory = {};  ///< kept alive for MPI and the functions
  };

  explicit PendingTransfer(Route route) : route_(std::move(route)) {}
  PendingTransfer(const PendingTransfer&) = delete;
  PendingTransfer& operator=(const PendingTransfer&) = delete;

  /// Progresses as far as it can without waiting. True when all blocks are complete.
  bool advance();

  /// Leaks a transfer that is not complete: MPI cannot be asked to give its buffers back.
  struct Drop {
    void operator()(PendingTransfer* transfer) const noexcept {
      if (transfer->blocks_.empty()) delete transfer;
    }
  };

 private:
  bool advance_once();  ///< true if any block has progressed

  Route route_;
  std::deque<Block> blocks_;  ///< started and not complete
  std::int64_t next_ = 0;     ///< the first element of the next block to start
};

using PendingTransferPtr = std::unique_ptr<PendingTransfer, PendingTransfer::Drop>;

inline PendingTransferPtr make_transfer(PendingTransfer::Route route) {
  return PendingTransferPtr(new PendingTransfer(std::move(route)));
}

}  // namespace hortator::comm
