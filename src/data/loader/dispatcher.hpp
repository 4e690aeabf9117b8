#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <hortator/detail/batch_source.hpp>
#include <memory>
#include <string>
#include <vector>

#include "core/activity/activity.hpp"
#include "data/loader/node_pipe.hpp"
#include "data/loader/step_reader.hpp"
#include "data/sharding/batch_shard.hpp"
#include "mpi/communicator.hpp"
#include "mpi/shared_memory.hpp"

namespace hortator::data {

/// A message from the reader of a node to one of its ranks.
struct Dispatch {
  enum class Kind : std::int32_t { batch, nothing, problem };

  Kind kind = Kind::nothing;
  std::int64_t samples = endless;  ///< samples of the whole pass, once known
  std::string state = {};          ///< the stream's encoded state, if it has one
  std::string content = {};        ///< the encoded batch, or the error message
};

/// Sends a loader's batches from the first rank of each node, which reads for all of them, to the other ranks, through
/// one pipe in shared memory for each. All ranks of the node must begin and end the same passes.
class Dispatcher {
 public:
  /// `node` must be a subset of `all`; `rank` is LoaderBinding::rank. @collective over `all`
  Dispatcher(const mpi::Communicator& node, const mpi::Communicator& all, int rank);

  bool reads() const { return node_.rank() == 0; }
  /// The LoaderBinding::rank of each rank on this node.
  const std::vector<int>& ranks() const { return ranks_; }

  std::uint64_t enter();  ///< this rank begins a pass; returns the pass's number
  /// This rank has left the pass: threads that wait for other ranks in it stop waiting.
  void leave(std::uint64_t pass) noexcept;

  /// Called by the reader: sends to the rank ranks()[local]. @thread any, one at a time
  void send(std::size_t local, std::uint64_t pass, const Dispatch& dispatch);
  /// Called by the other ranks. @thread any, one at a time
  Dispatch receive(std::uint64_t pass);

  /// Counts a batch as a collective operation of the node, so that the watchdog can name a reader that does not come.
  activity::Operation count_batch() const { return node_.membership().begin("next batch", 0); }

 private:
  NodePipe pipe_to(std::size_t local) const;
  void throw_if_left(std::uint64_t pass) const;

  mpi::Communicator node_;
  std::vector<int> ranks_;
  mpi::SharedMemory memory_;
  std::uint64_t entered_ = 0;
  std::vector<std::uint64_t> opened_;  ///< the pass that the reader has opened for each rank
  std::atomic<std::uint64_t> left_ = 0;
};

using Deliver = std::function<Delivery(std::int64_t step)>;

/// The rank reads its own batches.
Deliver read_alone(std::shared_ptr<StepReader> reader, int rank);

/// The rank reads the batches of all ranks of its node and sends the others theirs, or the error. `is_sized`: the other
/// ranks already know the number of steps.
Deliver read_for_node(std::shared_ptr<StepReader> reader, const BatchSource& source, Dispatcher& dispatcher,
                      std::uint64_t pass, bool is_sized);

/// The rank receives its batches from the one that reads for its node.
Deliver receive(const BatchSource& source, Dispatcher& dispatcher, std::uint64_t pass);

}  // namespace hortator::data
