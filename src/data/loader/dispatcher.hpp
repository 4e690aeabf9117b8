#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "core/activity/activity.hpp"
#include "data/loader/node_pipe.hpp"
#include "data/sharding/batch_shard.hpp"
#include "mpi/communicator.hpp"
#include "mpi/shared_memory.hpp"

namespace hortator::data {

/// What the reader of a node tells one of its ranks.
struct Dispatch {
  enum class Kind : std::int32_t { batch, nothing, problem };

  Kind kind = Kind::nothing;
  std::int64_t samples = endless;  ///< of the whole pass, once that is known
  std::string state = {};          ///< encoded: of the stream, if it has one
  std::string content = {};        ///< the encoded batch, or what went wrong
};

/// One loader's way from the first rank of each node, which reads for all of them, to the others: a pipe in shared
/// memory for each. All ranks of the node begin and end the same passes.
class Dispatcher {
 public:
  /// `node` is a part of `all`. @collective over `all`
  Dispatcher(const mpi::Communicator& node, const mpi::Communicator& all);

  bool reads() const { return node_.rank() == 0; }
  /// The ranks of `all` that are on this node.
  const std::vector<int>& ranks() const { return ranks_; }

  std::uint64_t enter();  ///< this rank begins a pass: its number
  /// It has left that pass: threads that wait for other ranks in it give up.
  void leave(std::uint64_t pass) noexcept;

  /// By the reader, to the rank ranks()[local]. @thread any, one at a time
  void send(std::size_t local, std::uint64_t pass, const Dispatch& dispatch);
  /// By the others. @thread any, one at a time
  Dispatch receive(std::uint64_t pass);

  /// A rank waits for its batch as for the others in a collective, so that a reader that stays away can be named.
  activity::Operation count_batch() const { return node_.membership().begin("next batch", 0); }

 private:
  NodePipe pipe_to(std::size_t local) const;
  void check_still_wanted(std::uint64_t pass) const;

  mpi::Communicator node_;
  std::vector<int> ranks_;
  mpi::SharedMemory memory_;
  std::uint64_t entered_ = 0;
  std::vector<std::uint64_t> opened_;  ///< by the reader, for each rank
  std::atomic<std::uint64_t> left_ = 0;
};

}  // namespace hortator::data
