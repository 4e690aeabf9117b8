#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

namespace hortator::comm {

/// Where each node's share of some bytes begins, and its length.
struct NodeCut {
  std::vector<int> counts = {};
  std::vector<int> offsets = {};

  void add(int offset, int count) {
    offsets.push_back(offset);
    counts.push_back(count);
  }
};

/// Data on its way between nodes, block by block. Calls move it on, and none of them waits.
class PendingTransfer {
 public:
  static constexpr std::int64_t block_bytes = 1 << 20;

  struct Block {
    std::int64_t begin = 0;  ///< in elements
    std::int64_t count = 0;
    std::vector<std::byte> packed = {};    ///< what leaves, where it does not leave from its own place
    std::vector<std::byte> received = {};  ///< what comes from all nodes
    NodeCut sent = {};                     ///< in bytes
    NodeCut kept = {};                     ///< the same in `received`
    MPI_Request request = MPI_REQUEST_NULL;
    bool has_come = false;
  };
  struct Route {
    std::int64_t elements = 0;
    std::int64_t per_block = 1;
    std::function<void(Block&)> send = {};           ///< in the blocks' order; makes the request
    std::function<void(Block&)> take_in = {};        ///< all that comes has come, in the blocks' order; may send again
    std::function<void(const Block&)> publish = {};  ///< the block is complete
    std::vector<std::shared_ptr<const void>> memory = {};  ///< that MPI and the functions work on
  };

  explicit PendingTransfer(Route route) : route_(std::move(route)) {}
  PendingTransfer(const PendingTransfer&) = delete;
  PendingTransfer& operator=(const PendingTransfer&) = delete;

  /// As far as it goes without waiting. True when all blocks are complete.
  bool advance();

  /// Nobody can take back from MPI what it was given: a flight that is dropped in the middle stays where it is.
  struct Drop {
    void operator()(PendingTransfer* transfer) const noexcept {
      if (transfer->blocks_.empty()) delete transfer;
    }
  };

 private:
  bool move_on();

  Route route_;
  std::deque<Block> blocks_;  ///< that are on their way
  std::int64_t next_ = 0;     ///< the first element of the block that leaves next
};

using PendingTransferPtr = std::unique_ptr<PendingTransfer, PendingTransfer::Drop>;

inline PendingTransferPtr make_transfer(PendingTransfer::Route route) {
  return PendingTransferPtr(new PendingTransfer(std::move(route)));
}

}  // namespace hortator::comm
