#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <vector>

#include "comm/mpi_communicator.hpp"
#include "comm/reduce_kernels.hpp"
#include "mpi/communicator.hpp"

namespace hortator::comm {

/// The ways between nodes: a lane joins the ranks of all nodes that have the same number within their node. Each lane
/// carries a slice of the data, so that every core and every network port works. There are as many lanes as the
/// smallest node has ranks; the other ranks own no slice.
class NodeLanes {
 public:
  /// @collective over `comm`
  NodeLanes(const mpi::Communicator& comm, const mpi::Communicator& node);

  int count() const { return count_; }
  bool has_own() const { return has_own_; }

  /// Part of a slice, in elements.
  using Step = std::function<void(std::int64_t begin, std::int64_t count)>;

  /// The slice at `data` becomes the reduction of the nodes' slices, in the nodes' order, block by block: `prepare` is
  /// called for each block before it leaves, `publish` when its result is there; other blocks are on their way
  /// meanwhile. @collective over the lane
  void all_reduce(std::byte* data, std::int64_t elements, at::ScalarType type, const kernels::Reduction& what,
                  const Step& prepare, const Step& publish);

 private:
  struct Cut {
    std::vector<int> counts = {};
    std::vector<int> offsets = {};
    void add(int offset, int count);
  };
  struct Block {
    std::int64_t begin = 0;
    std::int64_t count = 0;
    std::vector<std::byte> received = {};  ///< every node's share of what this node reduces
    Cut sent = {};                         ///< where each node's share begins in the block, and its length, in bytes
    Cut kept = {};                         ///< the same in `received`
    MPI_Request request = MPI_REQUEST_NULL;
    bool is_reduced = false;
  };
  void exchange(std::byte* data, std::int64_t elements, const kernels::Reduction& what, const Step& prepare,
                const Step& publish);
  void send_shares(Block& block, std::byte* begin, const kernels::Reduction& what);
  void reduce_own_share(const Block& block, std::byte* begin, const kernels::Reduction& what) const;
  void send_result(Block& block, std::byte* begin);
  /// True when the block is complete.
  bool advance(Block& block, std::byte* begin, const kernels::Reduction& what);

  int count_;
  bool has_own_;
  mpi::Communicator lane_;  ///< shares travel here, results there: each in the blocks' order, whatever the two's is
  mpi::Communicator results_;
  MpiCommunicator mpi_;  ///< over the lane
};

}  // namespace hortator::comm
